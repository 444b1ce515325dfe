// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/admin_port/admin_server.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/keys/block_key.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::admin {

// The most blocks of one worker that are listed. Their answer has 100 MB.
inline constexpr std::uint64_t kListedBlocksMax = 5'000'000;

// Lists the blocks that a worker holds according to the index, for a comparison with the engine.
// Thread safety: any thread may use it. All references must live longer.
struct IndexView {
  const fleet::Fleet& fleet;
  // `index` has the blocks of each rank, and `scheme` turns their keys into digests.
  const index::IndexStatistics& index;
  const keys::Scheme& scheme;

  // GET /v1/index?worker=NAME: for each rank the digests of the blocks in GPU memory.
  [[nodiscard]] admin_port::AdminResponse run(const admin_port::AdminRequest& request) const;
};

}  // namespace sightline::admin
