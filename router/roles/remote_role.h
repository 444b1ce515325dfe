// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <string>

#include "common/admin_port/admin_server.h"
#include "common/base/result.h"
#include "common/contract/selection_settings.h"
#include "common/hosts/lookup.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/front/selection/selector.h"
#include "router/process/open_files.h"
#include "router/workers/fleet/served.h"

namespace sightline::roles {

// Replaces the router role in a process with only the frontend role: uses routers in other
// processes.
// Thread safety: create(), start() and stop() from main, the other methods from any thread.
class RemoteRole {
 public:
  // What a frontend needs to find its routers.
  struct Options {
    // The routers' addresses, and the file with the token for them.
    const contract::SelectionSettings& settings;
    // Of this process, as in leases::Name.
    std::string instance;
    // All that the block keys of this process depend on, as text.
    std::string identity;
    const process::OpenFilesPlan& open_files;
  };
  // The objects that it uses. All outlive it. The names are stopped before the pool is destroyed.
  struct Deps {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::Metrics& metrics;
  };
  // Errors: of the token file and of the routers' URLs.
  static Result<std::unique_ptr<RemoteRole>> create(const Options& options, const Deps& deps);
  ~RemoteRole();

  // Starts to poll the routers.
  void start();
  // Adds the check of the routers. The paths for workers and index answer 404 with the place to ask
  // instead.
  void add_admin(admin_port::AdminServer& admin);
  // Called before each scrape.
  void refresh_metrics();
  // Ends the polls.
  void stop();

  // Asks the routers.
  [[nodiscard]] selection::Selector& selector();
  // What the routers' workers serve together, by the last poll.
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const;

  struct Parts;
  explicit RemoteRole(std::unique_ptr<Parts> parts);  // called by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
