// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/scheduler.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::core {
namespace {

constexpr TokenId kOutputBase = 1'000'000;

Scheduler make(const Scheduler::Options& options) {
  return Scheduler(options, [](std::uint64_t seed, std::size_t position) {
    return kOutputBase + static_cast<TokenId>(seed * 1000 + position);
  });
}

RequestSpec request(TokenId first, std::size_t prompt_tokens, std::uint32_t output_tokens = 4) {
  RequestSpec spec;
  spec.prompt.resize(prompt_tokens);
  std::iota(spec.prompt.begin(), spec.prompt.end(), first);
  spec.output_tokens_max = output_tokens;
  spec.answer_seed = first;
  return spec;
}

// Runs until no work is left. Returns the outputs of each request.
std::map<std::uint64_t, std::vector<StepOutput>> drain(Scheduler& scheduler) {
  std::map<std::uint64_t, std::vector<StepOutput>> all;
  while (!scheduler.schedule().empty()) {
    for (const StepOutput& output : scheduler.complete()) {
      all[output.request.value].push_back(output);
    }
  }
  return all;
}

TEST(Scheduler, ComputesThePromptThenOneTokenPerStep) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}});
  scheduler.add(request(0, 10, 3));
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 10U);
  const auto first = scheduler.complete();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].created_tokens, 8U);
  const StepWork second = scheduler.schedule();
  EXPECT_EQ(second.prefill_tokens, 0U);
  EXPECT_EQ(second.decode_tokens, 1U);
  EXPECT_FALSE(scheduler.complete()[0].finished);
  EXPECT_EQ(scheduler.schedule().decode_tokens, 1U);
  EXPECT_TRUE(scheduler.complete()[0].finished);
  EXPECT_TRUE(scheduler.schedule().empty());
  EXPECT_EQ(scheduler.cache().blocks_free(), scheduler.cache().blocks_usable());
}

TEST(Scheduler, RepeatedPromptComputesOnlyTheRest) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}});
  scheduler.add(request(0, 10, 1));
  drain(scheduler);
  const auto id = scheduler.add(request(0, 10, 1));
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 2U);
  const auto outputs = scheduler.complete();
  EXPECT_EQ(outputs[0].request, id);
  EXPECT_EQ(outputs[0].cached_tokens, 8U);
  EXPECT_EQ(outputs[0].created_tokens, 0U);
  EXPECT_EQ(scheduler.counters().cached_tokens, 8U);
  EXPECT_EQ(scheduler.counters().prompt_tokens, 20U);
  EXPECT_EQ(scheduler.counters().prefill_tokens, 12U);
}

TEST(Scheduler, EqualPromptsInOneStepShareTheirBlocks) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}});
  scheduler.add(request(0, 10, 1));
  scheduler.add(request(0, 10, 1));
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 12U);
  EXPECT_EQ(scheduler.complete()[1].cached_tokens, 8U);
  EXPECT_EQ(scheduler.take_events().size(), 1U);
}

TEST(Scheduler, ComputesLongPromptsInChunks) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}, .step_tokens_max = 8});
  scheduler.add(request(0, 20, 2));
  scheduler.add(request(100, 3, 2));
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 8U);
  EXPECT_TRUE(scheduler.complete().empty());
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 8U);
  EXPECT_TRUE(scheduler.complete().empty());
  EXPECT_EQ(scheduler.schedule().prefill_tokens, 7U);
  EXPECT_EQ(scheduler.complete().size(), 2U);
  EXPECT_EQ(scheduler.take_events().size(), 3U);
}

TEST(Scheduler, LongPromptLeavesRoomForDecoding) {
  Scheduler scheduler =
      make({.cache = {.block_size = 4, .blocks = 64}, .step_prompt_tokens_max = 4});
  scheduler.add(request(0, 3, 5));
  scheduler.schedule();
  scheduler.complete();
  scheduler.add(request(100, 40, 1));
  for (int step = 0; step < 4; ++step) {
    const StepWork work = scheduler.schedule();
    EXPECT_EQ(work.prefill_tokens, 4U);
    EXPECT_EQ(work.decode_tokens, 1U);
    EXPECT_EQ(scheduler.complete().size(), 1U);
  }
}

TEST(Scheduler, RequestsBeyondTheLimitWait) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}, .running_max = 2});
  for (TokenId i = 0; i < 5; ++i) scheduler.add(request(i * 100, 5, 2));
  scheduler.schedule();
  EXPECT_EQ(scheduler.running(), 2U);
  EXPECT_EQ(scheduler.waiting(), 3U);
  scheduler.complete();
  EXPECT_EQ(drain(scheduler).size(), 5U);
}

TEST(Scheduler, PreemptedRequestLosesNoToken) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 9}});
  const auto early = scheduler.add(request(0, 12, 12));
  const auto late = scheduler.add(request(100, 12, 12));
  const auto outputs = drain(scheduler);
  EXPECT_GT(scheduler.counters().preempted, 0U);
  for (const auto id : {early, late}) {
    const auto& produced = outputs.at(id.value);
    ASSERT_EQ(produced.size(), 12U);
    for (std::size_t i = 1; i < produced.size(); ++i) {
      EXPECT_EQ(produced[i].token, produced[i - 1].token + 1);
    }
  }
  EXPECT_LT(outputs.at(early.value).size(), scheduler.counters().generated_tokens);
  EXPECT_EQ(scheduler.counters().prompt_tokens, 24U);
}

TEST(Scheduler, AbortedRequestStopsBeforeItsNextStep) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}, .step_tokens_max = 8});
  const auto id = scheduler.add(request(0, 80, 4));
  scheduler.schedule();
  scheduler.abort(id);
  EXPECT_TRUE(scheduler.complete().empty());
  EXPECT_TRUE(scheduler.schedule().empty());
  EXPECT_EQ(scheduler.counters().prefill_tokens, 8U);
  EXPECT_EQ(scheduler.counters().aborted, 1U);
  EXPECT_EQ(scheduler.cache().blocks_free(), scheduler.cache().blocks_usable());
  scheduler.abort(id);
  EXPECT_EQ(scheduler.counters().aborted, 1U);
}

TEST(Scheduler, AbortedRequestLeavesTheQueue) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}, .running_max = 1});
  scheduler.add(request(0, 8, 2));
  const auto waiting = scheduler.add(request(100, 8, 2));
  scheduler.schedule();
  scheduler.complete();
  scheduler.abort(waiting);
  EXPECT_EQ(scheduler.waiting(), 0U);
  EXPECT_EQ(drain(scheduler).size(), 1U);
}

TEST(Scheduler, EncodesEachImageOnce) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 64}});
  RequestSpec spec = request(0, 20, 1);
  spec.keys.media = {{"a", 4, 8}};
  scheduler.add(spec);
  EXPECT_EQ(scheduler.schedule().encoder_tokens, 8U);
  scheduler.complete();
  scheduler.add(spec);
  EXPECT_EQ(scheduler.schedule().encoder_tokens, 0U);
  scheduler.complete();
  // At another place the blocks do not match, but the embeddings do.
  RequestSpec moved = request(50, 20, 1);
  moved.keys.media = {{"a", 5, 8}};
  scheduler.add(moved);
  EXPECT_EQ(scheduler.schedule().encoder_tokens, 0U);
  scheduler.complete();
  scheduler.reset_encoder_cache();
  RequestSpec again = request(500, 20, 1);
  again.keys.media = {{"a", 5, 8}};
  scheduler.add(again);
  EXPECT_EQ(scheduler.schedule().encoder_tokens, 8U);
  scheduler.complete();
}

TEST(Scheduler, RequestBeyondThePoolDoesNotFit) {
  Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 5}});
  EXPECT_TRUE(scheduler.fits(request(0, 13, 4)));
  EXPECT_FALSE(scheduler.fits(request(0, 13, 5)));
}

TEST(Scheduler, RandomRequestsGetAllTokensInSmallPool) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Scheduler scheduler = make({.cache = {.block_size = 4, .blocks = 12},
                                .running_max = 1 + rng.below(6),
                                .step_tokens_max = 4 + rng.below(30)});
    std::map<std::uint64_t, std::size_t> want;
    std::map<std::uint64_t, std::vector<TokenId>> got;
    for (int round = 0; round < 300; ++round) {
      if (round < 100 && rng.below(2) == 0) {
        RequestSpec spec = request(rng.below(3), 1 + rng.below(24), 1 + rng.below(16));
        const std::size_t outputs = spec.output_tokens_max;
        want[scheduler.add(std::move(spec)).value] = outputs;
      }
      if (scheduler.schedule().empty()) continue;
      for (const auto& output : scheduler.complete()) {
        got[output.request.value].push_back(output.token);
      }
    }
    for (const auto& output : drain(scheduler)) {
      for (const auto& step : output.second) got[output.first].push_back(step.token);
    }
    ASSERT_EQ(got.size(), want.size()) << "seed " << seed;
    for (const auto& [id, outputs] : want) {
      ASSERT_EQ(got[id].size(), outputs);
      for (std::size_t i = 0; i < outputs; ++i) EXPECT_EQ(got[id][i], got[id][0] + i);
    }
    EXPECT_EQ(scheduler.cache().blocks_free(), scheduler.cache().blocks_usable());
  }
}

}  // namespace
}  // namespace sightline::core
