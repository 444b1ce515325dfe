// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/contract/serve_settings.h"

#include "router/workers/routing/candidate.h"

namespace sightline::routing {

// The terms of a candidate's cost, in KV blocks. Lower is better.
struct Cost {
  // (booked prompt tokens + this prompt) / block size.
  double raw_prefill_blocks = 0;
  // The blocks that the cache saves, weighted by tier.
  double overlap_credit_blocks = 0;
  // prefill_load_scale * max(0, raw_prefill_blocks - overlap_credit_blocks).
  double prefill_blocks = 0;
  // decode_load_scale * (blocks of requests in decode + this prompt's blocks).
  double decode_blocks = 0;
  // prefill_blocks + decode_blocks.
  double total_blocks = 0;
};

// Returns the cost of a candidate. The rule is that of NVIDIA Dynamo 1.6's KV router with its
// default weights (kv-router, scheduling/selector: decay 0, no shared cache, no request weight).
// job.block_size must be above 0. Pure.
Cost cost_of(const Job& job, const Candidate& candidate, const contract::RoutingSettings& weights);

// The number of whole blocks in a prompt, and of blocks that it touches: a last part counts too.
std::uint64_t whole_blocks(const Job& job);
std::uint64_t touched_blocks(const Job& job);

}  // namespace sightline::routing
