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

// The router role: the workers, their blocks and load, and the choice among them.
// Thread safety: create(), start() and stop() from main, the other methods from any thread.
class RouterRole {
 public:
  // The objects that it uses. All outlive it.
  struct Deps {
    // Some settings change at run time: contract/live_settings.h.
    const Published<contract::ServeSettings>& settings;
    // For block keys.
    const keys::Scheme& scheme;
    // For the placeholder tokens.
    const prepare::LoadedModel& model;
    // For the workers' host names.
    hosts::Lookup& names;
    runtime::Metrics& metrics;
    MemoryLedger& memory;
    // Null: there are no other processes.
    process::ReplicaStack* replicas;
    IoPool& pool;
    // All that the block keys of this deployment depend on, as text. Frontends compare it with
    // theirs.
    std::string identity;
    // Limits on connections.
    process::OpenFilesPlan open_files;
    // See SelectionApi::Deps.
    std::function<Result<Done>()> ready;
    // Other processes may ask on a port.
    bool has_selection_port = true;
  };
  // Reads and follows nothing before start(). Errors: of the sockets for events.
  static Result<std::unique_ptr<RouterRole>> create(const Deps& shared);
  // Ends all parts, in reverse order of their construction.
  ~RouterRole();

  // Serves the selection API when it returns, if it has a port. Errors: of the port and of its
  // token file.
  Result<Done> listen();
  // Follows these workers. Call it after listen().
  void start(const std::vector<contract::WorkerSpec>& workers);
  // Applies another list of workers, soon after the return.
  void set_workers(std::vector<contract::WorkerSpec> workers);
  // Adds the check of the workers, and what can be seen of them, to the admin port.
  void add_admin(admin_port::AdminServer& admin);
  // Adds a field to /v1/replicas. `json` returns its value. Call it before add_admin().
  void add_to_replicas(std::string name, std::function<std::string()> json);
  // Called before each scrape.
  void refresh_metrics();
  // Answers no more requests of other processes.
  void drain();
  // Ends the probes, and announces to other routers that nothing is booked here. Call it once.
  void stop();

  // Nothing: it is not open.
  [[nodiscard]] std::optional<std::uint16_t> selection_port() const;
  // The workers and their states.
  [[nodiscard]] const fleet::Fleet& fleet() const;
  // The choice among these workers.
  [[nodiscard]] selection::Selector& selector();

  struct Parts;
  explicit RouterRole(std::unique_ptr<Parts> parts);  // called by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
