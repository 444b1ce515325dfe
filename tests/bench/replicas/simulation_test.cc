// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/bench/replicas/simulation.h"

#include <gtest/gtest.h>

namespace sightline::quality {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Trace small() { return conversations({.conversations = 100}, 7); }

Scenario few_engines() {
  Scenario scenario;
  scenario.engines = 4;
  scenario.engine.blocks = 256;
  return scenario;
}

Scenario replicas() {
  Scenario scenario = few_engines();
  scenario.routers = 3;
  scenario.shares_load = true;
  return scenario;
}

TracedRequest request(Duration at, std::uint32_t first_block) {
  TracedRequest made{.at = at, .prompt_tokens = 1'025, .output_tokens = 2, .whole_blocks = {}};
  for (std::uint64_t i = 0; i < 2; ++i) made.whole_blocks.push_back({first_block + i});
  return made;
}

TEST(Simulation, EqualArgumentsHaveEqualOutcomes) {
  const Outcome a = simulate(small(), replicas());
  const Outcome b = simulate(small(), replicas());
  EXPECT_EQ(a.hit_tokens, b.hit_tokens);
  EXPECT_EQ(a.first_token, b.first_token);
}

TEST(Simulation, ARepeatFindsTheWholeBlocksOfItsPrompt) {
  const Trace trace = {request(seconds(0), 1), request(seconds(10), 1), request(seconds(20), 5)};
  EXPECT_EQ(simulate(trace, few_engines()).hit_tokens, 1'024U);
}

TEST(Simulation, FirstTokenTakesPromptStepsAndBothWays) {
  Scenario scenario = few_engines();
  scenario.engine.step = milliseconds(10);
  scenario.engine.prefill_tokens_per_s = 1'000;
  scenario.engine.batch_tokens_max = 1'000;
  const Outcome outcome = simulate({request(seconds(0), 1)}, scenario);
  // Two steps, of 1,000 and of 25 tokens.
  EXPECT_EQ(outcome.first_token_at(0.5),
            2 * milliseconds(10) + milliseconds(1'025) + 2 * scenario.answer_delay);
}

TEST(Simulation, FullEngineEvictsLeastRecentlyUsedBlocks) {
  Scenario scenario = few_engines();
  scenario.engines = 1;
  scenario.engine.blocks = 5;  // a request needs three
  const Trace trace = {request(seconds(0), 1), request(seconds(10), 11), request(seconds(20), 21),
                       request(seconds(30), 21), request(seconds(40), 1)};
  EXPECT_EQ(simulate(trace, scenario).hit_tokens, 1'024U);
}

TEST(Simulation, IndexesEqualEnginesAndNoLoadRemains) {
  Scenario scenario = replicas();
  scenario.load_loss = 0.3;
  scenario.event_delay = milliseconds(200);
  const Outcome outcome = simulate(small(), scenario);
  EXPECT_TRUE(outcome.indexes_equal_engines);
  EXPECT_TRUE(outcome.load_is_zero);
  EXPECT_EQ(outcome.first_token.size(), small().size());
}

// If little can be reused, a choice can only balance the load.
TEST(Simulation, ReplicasThatShareLoadBalanceNewPromptsBetter) {
  const Trace trace = conversations({.conversations = 600, .turns = 1, .turn_blocks = 12}, 7);
  Scenario scenario = replicas();
  scenario.speed = speed_for(trace, few_engines(), 0.8);
  const Outcome shared = simulate(trace, scenario);
  scenario.shares_load = false;
  const Outcome alone = simulate(trace, scenario);
  EXPECT_LT(shared.first_token_at(0.99), alone.first_token_at(0.99));
  EXPECT_LT(shared.imbalance_s, alone.imbalance_s);
}

TEST(Simulation, TheSpeedForALoadBringsThatLoad) {
  Scenario scenario = few_engines();
  scenario.speed = speed_for(small(), scenario, 0.6);
  EXPECT_NEAR(simulate(small(), scenario).load, 0.6, 0.02);
}

TEST(Trace, IsReadLineByLineInTheOrderOfTime) {
  const auto trace = parse_trace(
      "{\"timestamp\": 3000, \"input_length\": 1030, \"output_length\": 7, \"hash_ids\": [0, 1, "
      "2]}\n"
      "{\"timestamp\": 0, \"input_length\": 500, \"output_length\": 0, \"hash_ids\": [9]}\n");
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_TRUE((*trace)[0].whole_blocks.empty());
  EXPECT_EQ((*trace)[0].output_tokens, 1U);
  EXPECT_EQ((*trace)[1].at, seconds(3));
  EXPECT_EQ((*trace)[1].whole_blocks.size(), 2U);
}

TEST(Trace, NamesTheLineThatCannotBeRead) {
  const auto trace = parse_trace("\n{\"timestamp\": 0}\n");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("line 2"), std::string::npos) << trace.error().message;
}

}  // namespace
}  // namespace sightline::quality
