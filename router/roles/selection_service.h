// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/memory_ledger.h"
#include "common/base/result.h"
#include "common/contract/selection_settings.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/cache/keys/block_key.h"
#include "router/front/leases/lease_book.h"
#include "router/front/selection/local_selector.h"
#include "router/front/selection_api/selection_api.h"
#include "router/process/open_files.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// The selection API on its port. It has a server like that for clients, with its own limits. A
// timer ends the reservations of silent frontends.
// Thread safety: create(), stop() and the destructor from main, the other methods from any thread.
class SelectionService {
 public:
  // What the service needs to listen.
  struct Options {
    const contract::SelectionSettings& settings;
    std::string identity;     // see SelectionApi::Options
    std::string scope_model;  // as for requests
    // Limits on connections.
    const process::OpenFilesPlan& open_files;
    MemoryLedger& memory;  // outlives the service
    // False: the port is not configured, and no other process asks here.
    bool listens = true;
    // See SelectionApi::Options.
    std::function<void(const std::vector<leases::Name>&)> on_taken = {};
  };
  // The objects that it uses. All outlive it. The pool is stopped before it is destroyed.
  struct Deps {
    IoPool& pool;
    // Makes the selections.
    selection::LocalSelector& selector;
    // Reports what the workers serve.
    const fleet::Fleet& fleet;
    const keys::Scheme& scheme;
    runtime::Metrics& metrics;
    std::function<Result<Done>()> ready;   // see SelectionApi::Deps
    std::function<std::string()> stale;    // see there
    std::function<std::uint32_t()> known;  // see there
  };
  // Listens when it returns, if it should. Errors: of the token file and of the port, with the name
  // of the setting.
  static Result<std::unique_ptr<SelectionService>> create(const Options& options, const Deps& deps);
  // The pool has stopped before.
  ~SelectionService();

  // Accepts no more requests, and answers the ones that it has.
  void stop();

  // Nothing: it does not listen.
  [[nodiscard]] std::optional<std::uint16_t> port() const;
  // For `supersede()` and `stands()`.
  [[nodiscard]] selection_api::SelectionApi& api();

  struct Parts;
  explicit SelectionService(std::unique_ptr<Parts> parts);  // called by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
