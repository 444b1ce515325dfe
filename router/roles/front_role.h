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

// The frontend role: clients' requests, from the first byte to the last; who serves them is asked
// of a selector.
// Thread safety: all methods from main.
class FrontRole {
 public:
  // All outlive it.
  struct Shared {
    const Published<contract::ServeSettings>& settings;  // some change: contract/live_settings.h
    const process::OpenFilesPlan& open_files;
    const contract::IdentityKey& identity;
    const keys::Scheme& scheme;
    std::shared_ptr<const prepare::LoadedModel> model;
    hosts::Lookup& names;
    runtime::Metrics& metrics;
    MemoryLedger& memory;
    IoPool& pool;
    selection::Selector& selector;
    std::function<std::shared_ptr<const fleet::Served>()> served;
  };
  explicit FrontRole(Shared shared);
  ~FrontRole();

  // Listens for clients when it returns. Errors: of the port.
  Result<Done> listen();
  // Limits of downloads are others now.
  void set_limits(const contract::MediaSettings& media);
  void add_admin(admin_port::AdminServer& admin);
  // Stops accepting, lets running answers finish for up to drain_timeout, cuts the rest off. What
  // still runs in the pool needs this object until the pool has stopped.
  void drain();

  [[nodiscard]] std::uint16_t port() const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::roles
