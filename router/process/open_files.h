// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <vector>

#include "common/contract/serve_settings.h"

namespace sightline::process {

// Raises the process's limit of open files as far as it may go, at most to a million, and says how
// far that is. Call before threads start.
std::size_t raise_open_files();

// Warns if that is too little for so many simulated engines and their clients.
void check_open_files(std::size_t limit, std::size_t engines);

// What a router may open at the same time, so that it has a descriptor for all of it.
struct OpenFilesPlan {
  std::size_t clients_max = 0;    // connections on the client port
  std::size_t frontends_max = 0;  // connections on the selection port; none without a router role
  std::size_t admin_max = 0;      // connections on the admin port
  // Kept connections of each I/O thread to engines, and as many to routers where these are others.
  std::size_t idle_per_thread_max = 0;
  // Clients, requests and downloads use only descriptors below: those above are for the admin port,
  // probes, logs and files, whatever was counted wrong.
  int descriptor_max = 0;
};

// Pure: shares the limit out. The workers of the settings are counted with their ranks, and as many
// again as may come later.
OpenFilesPlan plan_open_files(std::size_t limit, const contract::ServeSettings& settings,
                              std::size_t io_threads);

// Says where clients get fewer connections than configured, or the frontends of a router without
// clients fewer than without that limit, and what to do about it.
void tell_plan(std::size_t limit, const OpenFilesPlan& plan,
               const contract::ServeSettings& settings);

}  // namespace sightline::process
