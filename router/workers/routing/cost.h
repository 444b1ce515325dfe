// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/contract/serve_settings.h"

#include "router/workers/routing/candidate.h"

namespace sightline::routing {

// The terms of a candidate's cost, in blocks; lower is better.
struct Cost {
  double raw_prefill_blocks = 0;     // (booked prompt tokens + this prompt) / block size
  double overlap_credit_blocks = 0;  // what the cache saves
  double prefill_blocks = 0;         // scale · max(0, raw − credit)
  double decode_blocks = 0;          // scale · (blocks in use by requests in flight + this one's)
  double total_blocks = 0;           // prefill + decode
};

// The cost rule of NVIDIA Dynamo 1.6's KV router with its default weights
// (kv-router, scheduling/selector: decay 0, no shared cache, no request weight).
Cost cost_of(const Job& job, const Candidate& candidate, const contract::RoutingSettings& weights);

// Whole blocks a prompt fills, and blocks it touches.
std::uint64_t whole_blocks(const Job& job);
std::uint64_t touched_blocks(const Job& job);

}  // namespace sightline::routing
