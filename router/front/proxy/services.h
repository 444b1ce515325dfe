// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "common/contract/identity_key.h"
#include "common/contract/serve_settings.h"
#include "common/http/client.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/cache/audit/audit.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/cache/keys/block_key.h"
#include "router/prompt/media/fetcher.h"
#include "router/prompt/prepare/model.h"
#include "router/prompt/prepare/token_cache.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::proxy {

// What the life of a request needs. Everything outlives the proxy and is safe to use from all I/O
// and compute threads.
struct Services {
  const contract::ServeSettings& settings;
  const contract::IdentityKey& identity;
  const keys::Scheme& scheme;
  const Clock& clock;
  std::shared_ptr<const prepare::Model> model;
  prepare::TokenCache& token_cache;
  IoPool& pool;
  http::Client& engines;
  media::Fetcher& fetcher;
  fleet::Fleet& fleet;
  const index::IndexReader& index;
  const index::RemovalJournal& removals;
  audit::Audit& audit;
  runtime::Metrics& metrics;
};

}  // namespace sightline::proxy
