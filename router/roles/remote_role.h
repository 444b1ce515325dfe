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

// What stands for the router role in a process that has the frontend role alone: routers in other
// processes.
// Thread safety: create(), start() and stop() from main, the rest from any thread.
class RemoteRole {
 public:
  struct Options {
    const contract::SelectionSettings& settings;
    std::string instance;  // of this process, as in leases::Name
    std::string identity;  // what its block keys depend on
    const process::OpenFilesPlan& open_files;
  };
  // All outlive it. The names are stopped before the pool is destroyed.
  struct Around {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::Metrics& metrics;
  };
  // Errors: of the token file and the routers' URLs.
  static Result<std::unique_ptr<RemoteRole>> create(const Options& options, const Around& around);
  ~RemoteRole();

  void start();
  // The check of the routers; what routers show is not shown here, and who asks for it is told.
  void add_admin(admin_port::AdminServer& admin);
  void refresh_metrics();
  void stop();

  [[nodiscard]] selection::Selector& selector();
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const;

  struct Parts;
  explicit RemoteRole(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
