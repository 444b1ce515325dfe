// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/routing/cost.h"

#include <algorithm>

#include "common/base/check.h"

namespace sightline::routing {

std::uint64_t whole_blocks(const Job& job) { return job.prompt_tokens / job.block_size; }

std::uint64_t touched_blocks(const Job& job) {
  return whole_blocks(job) + (job.prompt_tokens % job.block_size != 0 ? 1 : 0);
}

Cost cost_of(const Job& job, const Candidate& candidate, const contract::RoutingSettings& weights) {
  SL_CHECK(job.block_size > 0);
  Cost cost;
  cost.raw_prefill_blocks =
      (candidate.active_prefill_tokens + static_cast<double>(job.prompt_tokens)) / job.block_size;
  cost.overlap_credit_blocks = weights.overlap_credit * candidate.gpu_blocks +
                               weights.host_credit * candidate.cpu_blocks +
                               weights.disk_credit * candidate.storage_blocks;
  // A large credit must not make other work look cheaper, so prefill never falls below 0.
  cost.prefill_blocks = weights.prefill_load_scale *
                        std::max(0.0, cost.raw_prefill_blocks - cost.overlap_credit_blocks);
  cost.decode_blocks = weights.decode_load_scale *
                       (candidate.active_blocks + static_cast<double>(touched_blocks(job)));
  cost.total_blocks = cost.prefill_blocks + cost.decode_blocks;
  return cost;
}

}  // namespace sightline::routing
