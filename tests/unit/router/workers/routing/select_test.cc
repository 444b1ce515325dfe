// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/routing/select.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace sightline::routing {
namespace {

const contract::RoutingSettings kSettings;
constexpr Job kJob{.prompt_tokens = 160, .block_size = 16};

std::vector<Candidate> idle(std::size_t count) { return std::vector<Candidate>(count); }

TEST(Select, TheConformanceVectorChoosesTheSecondWorker) {
  std::vector<Candidate> candidates = idle(3);
  const std::uint32_t overlap[] = {2, 5, 8};
  const double decode[] = {10, 5, 9};
  for (std::size_t i = 0; i < 3; ++i) {
    candidates[i].gpu_blocks = overlap[i];
    candidates[i].active_blocks = decode[i];
    candidates[i].active_prefill_tokens = 160;
  }
  contract::RoutingSettings settings;
  settings.tie_tolerance_blocks = 0;
  settings.tie_tolerance_ratio = 0;
  settings.recompute_weight = 0;
  Rng rng(1);
  const Decision decision =
      select({.prompt_tokens = 0, .block_size = 16}, candidates, {settings}, rng);
  EXPECT_EQ(decision.chosen, 1U);
  EXPECT_EQ(decision.reason, Reason::LeastCost);
}

TEST(Select, TiesUseInFlightThenKvUseThenADraw) {
  Rng rng(7);
  std::vector<Candidate> candidates = idle(3);
  candidates[0].in_flight = 2;
  candidates[1].in_flight = 1;
  candidates[2].in_flight = 1;
  candidates[1].kv_usage = 0.55;
  candidates[2].kv_usage = 0.35;
  Decision decision = select(kJob, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 2U);
  EXPECT_EQ(decision.reason, Reason::LowestKvUse);
  candidates[2].in_flight = 0;
  decision = select(kJob, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 2U);
  EXPECT_EQ(decision.reason, Reason::FewestInFlight);
  std::array<int, 3> drawn{};
  const std::vector<Candidate> equal = idle(3);
  for (int i = 0; i < 3000; ++i) {
    decision = select(kJob, equal, {kSettings}, rng);
    EXPECT_EQ(decision.reason, Reason::Draw);
    ++drawn.at(decision.chosen);
  }
  for (const int count : drawn) EXPECT_NEAR(count, 1000, 150);
}

TEST(Select, AnOverlapWithinTheToleranceDoesNotGlueTraffic) {
  Rng rng(7);
  std::vector<Candidate> candidates = idle(2);
  candidates[0].gpu_blocks = 1;
  candidates[0].in_flight = 1;
  EXPECT_EQ(select(kJob, candidates, {kSettings}, rng).chosen, 1U);
  candidates[0].gpu_blocks = 3;
  EXPECT_EQ(select(kJob, candidates, {kSettings}, rng).chosen, 0U);
}

TEST(Select, APrefixThatAllShareSpreadsOverIdleEngines) {
  // 400 prompts of 30 blocks, of which the first 12 are the same in all of them.
  Rng rng(3);
  const Job job{.prompt_tokens = 480, .block_size = 16};
  std::vector<Candidate> candidates = idle(4);
  std::array<int, 4> served{};
  for (int i = 0; i < 400; ++i) {
    const std::size_t chosen = select(job, candidates, {kSettings}, rng).chosen;
    ++served.at(chosen);
    candidates[chosen].recent_prefill_blocks += 30 - candidates[chosen].gpu_blocks;
    candidates[chosen].gpu_blocks = 12;
  }
  for (const int count : served) {
    EXPECT_GE(count, 60);
    EXPECT_LE(count, 140);
  }
}

TEST(Select, AChoiceThatOnlyRecentWorkExplainsSaysSo) {
  Rng rng(3);
  std::vector<Candidate> candidates = idle(2);
  candidates[0].gpu_blocks = 5;
  EXPECT_EQ(select(kJob, candidates, {kSettings}, rng).reason, Reason::LeastCost);
  candidates[0].recent_prefill_blocks = 100;
  const Decision decision = select(kJob, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 1U);
  EXPECT_EQ(decision.reason, Reason::Spread);
  EXPECT_EQ(name_of(decision.reason), "spread");
}

TEST(Select, ChanceDifferencesOfRecentWorkAreNotCharged) {
  Rng rng(3);
  std::vector<Candidate> candidates = idle(2);
  candidates[0].gpu_blocks = 8;
  candidates[0].recent_prefill_blocks = 1090;
  candidates[1].recent_prefill_blocks = 1000;
  const Decision decision = select(kJob, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 0U);
  EXPECT_DOUBLE_EQ(decision.scores[0].spread_blocks, 0);
}

// A prompt of 17 blocks that candidate 0 holds whole. It has booked_blocks of load, the other is
// idle.
Decision with_load_at_home(double booked_blocks, const contract::RoutingSettings& settings) {
  Rng rng(3);
  std::vector<Candidate> candidates = idle(2);
  candidates[0].gpu_blocks = 17;
  candidates[0].in_flight = 1;
  candidates[0].active_prefill_tokens = booked_blocks * 16;
  return select({.prompt_tokens = 16 * 17, .block_size = 16}, candidates, {settings}, rng);
}

TEST(Select, ChargesAnEngineForRecomputingABusierOnesBlocks) {
  // By the cost alone the idle engine is ahead from 17 booked blocks on.
  const Decision stays = with_load_at_home(25, kSettings);
  EXPECT_EQ(stays.chosen, 0U);
  EXPECT_EQ(stays.reason, Reason::LeastCost);
  EXPECT_DOUBLE_EQ(stays.scores[0].recompute_blocks, 0);
  EXPECT_DOUBLE_EQ(stays.scores[1].recompute_blocks, 17);
  EXPECT_EQ(with_load_at_home(36, kSettings).chosen, 1U);
}

TEST(Select, TheRecomputeChargeNeverExceedsTheLoadItWeighsAgainst) {
  EXPECT_DOUBLE_EQ(with_load_at_home(5, kSettings).scores[1].recompute_blocks, 5);
  EXPECT_DOUBLE_EQ(with_load_at_home(0, kSettings).scores[1].recompute_blocks, 0);
}

TEST(Select, ARecomputeWeightOfZeroLeavesTheCostAlone) {
  contract::RoutingSettings settings;
  settings.recompute_weight = 0;
  const Decision decision = with_load_at_home(25, settings);
  EXPECT_EQ(decision.chosen, 1U);
  EXPECT_DOUBLE_EQ(decision.scores[1].recompute_blocks, 0);
}

TEST(Select, HomeIsTheLeastBusyOfTheFullestHolders) {
  Rng rng(3);
  std::vector<Candidate> candidates = idle(3);
  for (Candidate& c : candidates) c.gpu_blocks = 17;
  candidates[0].active_prefill_tokens = 100 * 16;
  candidates[1].active_prefill_tokens = 10 * 16;
  candidates[2].gpu_blocks = 0;
  const Decision decision =
      select({.prompt_tokens = 16 * 17, .block_size = 16}, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 1U);
  EXPECT_DOUBLE_EQ(decision.scores[0].recompute_blocks, 0);
  EXPECT_DOUBLE_EQ(decision.scores[2].recompute_blocks, 10);
}

TEST(Select, ALongConversationStaysWhereItsPrefixIs) {
  Rng rng(3);
  std::vector<Candidate> candidates = idle(2);
  candidates[0].gpu_blocks = 500;
  candidates[0].recent_prefill_blocks = 1e6;
  const Decision decision =
      select({.prompt_tokens = 16 * 520, .block_size = 16}, candidates, {kSettings}, rng);
  EXPECT_EQ(decision.chosen, 0U);
  EXPECT_DOUBLE_EQ(decision.scores[0].spread_blocks, kSpreadBlocksMax);
}

TEST(Select, RoundRobinTakesTurnsAndLeastLoadedTakesTheIdlest) {
  Rng rng(5);
  std::vector<Candidate> candidates = idle(3);
  candidates[0].gpu_blocks = 10;
  for (std::uint64_t turn = 0; turn < 6; ++turn) {
    const contract::RoutingSettings settings{.policy = contract::Policy::RoundRobin};
    EXPECT_EQ(select(kJob, candidates, {settings, turn}, rng).chosen, turn % 3);
  }
  candidates[0].in_flight = 1;
  candidates[1].in_flight = 1;
  const contract::RoutingSettings settings{.policy = contract::Policy::LeastLoaded};
  EXPECT_EQ(select(kJob, candidates, {settings}, rng).chosen, 2U);
}

TEST(Select, RandomUsesEveryCandidate) {
  Rng rng(5);
  const std::vector<Candidate> candidates = idle(4);
  const contract::RoutingSettings settings{.policy = contract::Policy::Random};
  std::array<int, 4> drawn{};
  for (int i = 0; i < 4000; ++i) ++drawn.at(select(kJob, candidates, {settings}, rng).chosen);
  EXPECT_GT(*std::min_element(drawn.begin(), drawn.end()), 800);
}

}  // namespace
}  // namespace sightline::routing
