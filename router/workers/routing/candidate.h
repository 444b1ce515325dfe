// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

namespace sightline::routing {

// What a request asks of a worker.
struct Job {
  std::uint64_t prompt_tokens = 0;
  std::uint32_t block_size = 1;  // tokens per KV block, > 0
};

// One worker that may serve the request, with what it holds and what it is doing.
struct Candidate {
  // Leading blocks of the prompt that the worker holds and may reuse, by the tier they are in:
  // each counts further blocks after the one before. At most the prompt's whole blocks.
  std::uint32_t gpu_blocks = 0;
  std::uint32_t cpu_blocks = 0;
  std::uint32_t storage_blocks = 0;
  // Booked work: prompt tokens still to be computed, blocks of the requests in flight.
  double active_prefill_tokens = 0;
  double active_blocks = 0;
  // Prompt blocks this worker had to compute lately, decaying over time.
  double recent_prefill_blocks = 0;
  std::uint32_t in_flight = 0;
  // Part of its KV cache in use as the engine reports it, 0 to 1.
  double kv_usage = 0;
};

}  // namespace sightline::routing
