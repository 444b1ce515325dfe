// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/routing/cost.h"

#include <gtest/gtest.h>

namespace sightline::routing {
namespace {

TEST(Cost, EqualsTheConformanceVectorOfTheRule) {
  // Raw prefill 10 each, overlap 2/5/8, decode 10/5/9 give 18/10/11.
  const Job job{.prompt_tokens = 0, .block_size = 16};
  const std::uint32_t overlap[] = {2, 5, 8};
  const double decode[] = {10, 5, 9};
  const double want[] = {18, 10, 11};
  for (int i = 0; i < 3; ++i) {
    const Candidate candidate{
        .gpu_blocks = overlap[i], .active_prefill_tokens = 160, .active_blocks = decode[i]};
    EXPECT_DOUBLE_EQ(cost_of(job, candidate, {}).total_blocks, want[i]);
  }
}

TEST(Cost, EachTierSavesItsOwnShare) {
  const Job job{.prompt_tokens = 160, .block_size = 16};
  const Candidate candidate{.gpu_blocks = 2, .cpu_blocks = 4, .storage_blocks = 4};
  const Cost cost = cost_of(job, candidate, {});
  EXPECT_DOUBLE_EQ(cost.overlap_credit_blocks, 2 + 3 + 1);
  EXPECT_DOUBLE_EQ(cost.prefill_blocks, 4);
  EXPECT_DOUBLE_EQ(cost.decode_blocks, 10);
}

TEST(Cost, CreditNeverMakesThePrefillNegative) {
  const Job job{.prompt_tokens = 32, .block_size = 16};
  EXPECT_DOUBLE_EQ(cost_of(job, {.gpu_blocks = 50}, {}).prefill_blocks, 0);
}

TEST(Cost, ABrokenBlockCountsAsTouchedButNotAsWhole) {
  const Job job{.prompt_tokens = 33, .block_size = 16};
  EXPECT_EQ(whole_blocks(job), 2U);
  EXPECT_EQ(touched_blocks(job), 3U);
}

}  // namespace
}  // namespace sightline::routing
