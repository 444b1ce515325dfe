// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/admin_port/admin_server.h"
#include "common/base/memory_ledger.h"
#include "common/base/published.h"
#include "common/base/result.h"
#include "common/contract/serve_settings.h"
#include "common/hosts/lookup.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/cache/keys/block_key.h"
#include "router/front/selection/selector.h"
#include "router/process/open_files.h"
#include "router/process/replica_stack.h"
#include "router/prompt/prepare/model.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// The router role: the workers, what they hold and what they have to do, and the choice among them.
// Thread safety: create(), start() and stop() from main, the rest from any thread.
class RouterRole {
 public:
  // All outlive it.
  struct Shared {
    const Published<contract::ServeSettings>& settings;  // some change: contract/live_settings.h
    const keys::Scheme& scheme;
    const prepare::LoadedModel& model;
    hosts::Lookup& names;
    runtime::Metrics& metrics;
    MemoryLedger& memory;
    process::ReplicaStack* replicas;  // null: one process alone
    IoPool& pool;
    std::string identity;  // what the keys of the deployment depend on, for its frontends
    process::OpenFilesPlan open_files;
    std::function<Result<Done>()> ready;  // as SelectionApi::Sources
    bool has_selection_port = true;       // others may ask on a port
  };
  // Reads nothing and follows nobody until start(). Errors: of the events' sockets.
  static Result<std::unique_ptr<RouterRole>> create(const Shared& shared);
  ~RouterRole();

  // Answers on the selection API, where that is asked for, when it returns. Errors: of its port and
  // token file.
  Result<Done> listen();
  // Follows these workers; after listen().
  void start(const std::vector<contract::WorkerSpec>& workers);
  // Another list of workers: taken over soon after the return.
  void set_workers(std::vector<contract::WorkerSpec> workers);
  // The check of the workers and what can be seen of them.
  void add_admin(admin_port::AdminServer& admin);
  // A further field of /v1/replicas, and what makes its value; before add_admin().
  void add_to_replicas(std::string name, std::function<std::string()> json);
  // Before each scrape.
  void refresh_metrics();
  // Takes no more questions of other processes.
  void drain();
  // Ends what asks the workers, and says to the other routers that nothing is booked here. Once.
  void stop();

  // Nothing: it is not open.
  [[nodiscard]] std::optional<std::uint16_t> selection_port() const;
  [[nodiscard]] const fleet::Fleet& fleet() const;
  [[nodiscard]] selection::Selector& selector();

  struct Parts;
  explicit RouterRole(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
