// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/admin_port/admin_server.h"
#include "common/base/memory_ledger.h"
#include "common/base/published.h"
#include "common/base/result.h"
#include "common/contract/identity_key.h"
#include "common/contract/serve_settings.h"
#include "common/hosts/lookup.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/cache/keys/block_key.h"
#include "router/front/selection/selector.h"
#include "router/process/open_files.h"
#include "router/prompt/prepare/model.h"
#include "router/workers/fleet/served.h"

namespace sightline::roles {

// The frontend role: client requests, from the first byte to the last. It asks a selector which
// worker serves a request.
// Thread safety: all methods from main.
class FrontRole {
 public:
  // The objects that it uses. All outlive it.
  struct Deps {
    // Some settings change at run time: contract/live_settings.h.
    const Published<contract::ServeSettings>& settings;
    // Limits on connections.
    const process::OpenFilesPlan& open_files;
    // For image identities.
    const contract::IdentityKey& identity;
    // For block keys.
    const keys::Scheme& scheme;
    std::shared_ptr<const prepare::LoadedModel> model;
    hosts::Lookup& names;
    runtime::Metrics& metrics;
    MemoryLedger& memory;
    // Runs requests and their computing steps.
    IoPool& pool;
    // Chooses the workers.
    selection::Selector& selector;
    // Returns what the workers serve together.
    std::function<std::shared_ptr<const fleet::Served>()> served;
  };
  // Creates all parts. It listens only after listen().
  explicit FrontRole(Deps shared);
  // The pool has stopped before.
  ~FrontRole();

  // Listens for clients when it returns. Errors: of the port, and of `media.ca_file`.
  Result<Done> listen();
  // Applies changed limits of downloads.
  void set_limits(const contract::MediaSettings& media);
  // Adds POST /v1/explain to the admin port.
  void add_admin(admin_port::AdminServer& admin);
  // Stops accepting connections, waits up to `server.drain_timeout` for running answers, then cuts
  // off the rest. Tasks in the pool need this object until the pool has stopped.
  void drain();

  // The client port. Needs a successful listen().
  [[nodiscard]] std::uint16_t port() const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
