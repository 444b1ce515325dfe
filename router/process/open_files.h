// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <vector>

#include "common/contract/serve_settings.h"

namespace sightline::process {

// Raises the process's limit of open files to its hard limit, at most to a million. Returns the
// limit. Call it before threads start.
std::size_t raise_open_files();

// Logs a warning if the limit is too low for this number of simulated engines and their clients.
void check_open_files(std::size_t limit, std::size_t engines);

// How many connections of each kind a router may have open. The sum stays below the limit of open
// files.
struct OpenFilesPlan {
  // Connections on the client port.
  std::size_t clients_max = 0;
  // Connections on the selection port, 0 without the router role.
  std::size_t frontends_max = 0;
  // Connections on the admin port.
  std::size_t admin_max = 0;
  // Idle connections to engines that each I/O thread keeps. It keeps as many to routers, if these
  // are other processes.
  std::size_t idle_per_thread_max = 0;
  // Clients, requests and downloads only use descriptors below this one. The others are for the
  // admin port, probes, logs and files, even if a number above was too low.
  int descriptor_max = 0;
};

// Divides the limit among the kinds of connections. The configured workers count with their ranks,
// and as many again for workers that come later. Pure.
OpenFilesPlan plan_open_files(std::size_t limit, const contract::ServeSettings& settings,
                              std::size_t io_threads);

// Logs a warning if clients get fewer connections than configured. In a router without clients, if
// frontends get fewer than they would without the limit. The line says what to do.
void tell_plan(std::size_t limit, const OpenFilesPlan& plan,
               const contract::ServeSettings& settings);

}  // namespace sightline::process
