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

// The selection API on its port: a server of the data path's kind with limits of its own, and a
// clock by which silent holders lose what they reserved.
// Thread safety: create(), stop() and the destructor from main, the rest from any thread.
class SelectionService {
 public:
  struct Options {
    const contract::SelectionSettings& settings;
    std::string identity;     // as SelectionApi::Options
    std::string scope_model;  // as for requests
    const process::OpenFilesPlan& open_files;
    MemoryLedger& memory;  // outlives the service
    bool listens = true;   // false: nobody asked for the port, and no other process asks here
    // As SelectionApi::Options.
    std::function<void(const std::vector<leases::Name>&)> on_taken = {};
  };
  // All outlive it; the pool is stopped before it is destroyed.
  struct Around {
    IoPool& pool;
    selection::LocalSelector& selector;
    const fleet::Fleet& fleet;
    const keys::Scheme& scheme;
    runtime::Metrics& metrics;
    std::function<Result<Done>()> ready;   // as SelectionApi::Sources
    std::function<std::string()> stale;    // likewise
    std::function<std::uint32_t()> known;  // likewise
  };
  // Listens when it returns, if it is to. Errors: of the token file and the port, naming the
  // setting.
  static Result<std::unique_ptr<SelectionService>> create(const Options& options,
                                                          const Around& around);
  ~SelectionService();

  // Takes no more requests and answers those that it has.
  void stop();

  // Nothing: it does not listen.
  [[nodiscard]] std::optional<std::uint16_t> port() const;
  // For supersede().
  [[nodiscard]] selection_api::SelectionApi& api();

  struct Parts;
  explicit SelectionService(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
