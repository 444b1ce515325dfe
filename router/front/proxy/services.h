// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"
#include "common/base/published.h"
#include "common/contract/identity_key.h"
#include "common/contract/serve_settings.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/cache/keys/block_key.h"
#include "router/front/selection/selector.h"
#include "router/prompt/media/fetcher.h"
#include "router/prompt/prepare/model.h"
#include "router/prompt/prepare/token_cache.h"
#include "router/workers/fleet/served.h"

namespace sightline::proxy {

// The parts that serve requests. All live longer than the proxy, and all I/O and compute threads
// may use them.
struct Deps {
  // The settings that count at this moment. Some of them change while requests run
  // (contract/live_settings.h).
  const Published<contract::ServeSettings>& settings;
  // The secret key of digests of clients' data.
  const contract::IdentityKey& identity;
  const keys::Scheme& scheme;
  const Clock& clock;
  std::shared_ptr<const prepare::LoadedModel> model;
  prepare::TokenCache& token_cache;
  // The I/O threads of requests and the compute threads of large work.
  IoPool& pool;
  media::Fetcher& fetcher;
  // Returns what the workers serve at this moment.
  std::function<std::shared_ptr<const fleet::Served>()> served;
  // The router role, in this process or in another one.
  selection::Selector& selector;
  runtime::Metrics& metrics;
  // Counts the memory of requests, except their bodies.
  ByteBudget& memory;
  // Counts the bytes of engines' answers that are held. Null: they are not counted.
  ByteBudget* answers = nullptr;
};

}  // namespace sightline::proxy
