// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/admin_port/admin_server.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/keys/block_key.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::admin {

// Blocks of one worker that are listed; 100 MB of answer.
inline constexpr std::uint64_t kListedBlocksMax = 5'000'000;

// What the index believes that a worker holds, for comparing it with the engine.
// Thread safety: from any thread. All references outlive the view.
struct IndexView {
  const fleet::Fleet& fleet;
  const index::IndexStatistics& index;
  const keys::Scheme& scheme;

  // GET /v1/index?worker=NAME: per rank the digests of the blocks on its GPU.
  [[nodiscard]] admin_port::AdminResponse run(const admin_port::AdminRequest& request) const;
};

}  // namespace sightline::admin
