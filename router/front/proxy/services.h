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

// What the life of a request needs. Everything outlives the proxy and is safe to use from all I/O
// and compute threads.
struct Services {
  // Some change while requests run: contract/live_settings.h.
  const Published<contract::ServeSettings>& settings;
  const contract::IdentityKey& identity;
  const keys::Scheme& scheme;
  const Clock& clock;
  std::shared_ptr<const prepare::LoadedModel> model;
  prepare::TokenCache& token_cache;
  IoPool& pool;
  media::Fetcher& fetcher;
  // What the workers serve, at this moment.
  std::function<std::shared_ptr<const fleet::Served>()> served;
  selection::Selector& selector;
  runtime::Metrics& metrics;
  ByteBudget& memory;             // what requests take besides their bodies is charged here
  ByteBudget* answers = nullptr;  // bytes of engines' answers that are held; null: not counted
};

}  // namespace sightline::proxy
