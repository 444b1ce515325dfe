// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

namespace sightline::routing {

// What a request needs of a worker.
struct Job {
  // All tokens of the prompt, cached or not.
  std::uint64_t prompt_tokens = 0;
  // Tokens per KV block, > 0.
  std::uint32_t block_size = 1;
};

// A rank that may serve the request: the blocks that it holds, and its load.
struct Candidate {
  // Leading blocks of the prompt that the rank holds and may reuse, by tier. Each field counts the
  // blocks after those of the fields before. Together at most the whole blocks of the prompt.
  std::uint32_t gpu_blocks = 0;
  std::uint32_t cpu_blocks = 0;
  std::uint32_t storage_blocks = 0;
  // Booked work: prompt tokens still to compute, and blocks of the requests in decode.
  double active_prefill_tokens = 0;
  double active_blocks = 0;
  // Prompt blocks that the rank computed lately, with a half-life (fleet::kRecentHalfLife).
  double recent_prefill_blocks = 0;
  // Booked requests that have not ended.
  std::uint32_t in_flight = 0;
  // The used part of its KV cache as the engine reports it, from 0 to 1.
  double kv_usage = 0;
};

}  // namespace sightline::routing
