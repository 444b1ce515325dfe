// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/name_meanings.h"

#include <gtest/gtest.h>

#include "router/workers/fleet/served.h"
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

const Ballot kBase = ballot_of({{"m", ""}}, true);
const Ballot kAdapter = ballot_of({{"m", "x"}}, true);
const Ballot kNone;

TEST(NameMeanings, MostWorkersDecideAndATieKeepsWhatWas) {
  NameMeanings names({});
  EXPECT_FALSE(names.recast(kNone, kBase, true));
  EXPECT_FALSE(names.recast(kNone, kAdapter, true)) << "a tie";
  EXPECT_TRUE(names.recast(kNone, kAdapter, true));
  EXPECT_EQ(names.adapters(), AdapterNames{"m"});
  EXPECT_FALSE(names.recast(kNone, kBase, true)) << "a tie again";
  EXPECT_TRUE(names.recast(kAdapter, kNone, true));
  EXPECT_TRUE(names.adapters().empty());
}

TEST(NameMeanings, InitialTieMeansTheBaseModel) {
  for (const bool is_adapter_first : {true, false}) {
    NameMeanings names({});
    names.recast(kNone, is_adapter_first ? kAdapter : kBase, false);
    names.recast(kNone, is_adapter_first ? kBase : kAdapter, true);
    EXPECT_TRUE(names.adapters().empty());
  }
}

TEST(NameMeanings, OnlyWorkersThatMayTakeRequestsCount) {
  NameMeanings names({});
  for (int i = 0; i < 3; ++i) names.recast(kNone, ballot_of({{"m", "x"}}, false), true);
  EXPECT_TRUE(names.adapters().empty());
  names.recast(kNone, kBase, true);
  EXPECT_TRUE(names.adapters().empty());
}

TEST(NameMeanings, ConfiguredNameMeansTheBaseModel) {
  NameMeanings names({"m"});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(names.recast(kNone, kAdapter, true));
  EXPECT_NE(names.conflict_of(kAdapter).find("model.served_names"), std::string::npos);
  EXPECT_EQ(names.conflict_of(kBase), "");
}

TEST(NameMeanings, ForgetsANameThatNoWorkerLists) {
  NameMeanings names({});
  names.recast(kNone, kAdapter, true);
  EXPECT_TRUE(names.recast(kAdapter, kNone, true));
  names.recast(kNone, kBase, true);
  EXPECT_FALSE(names.recast(kNone, kAdapter, true));
  EXPECT_TRUE(names.adapters().empty());
}

// One engine that lists the base model's name as an adapter.
class NamesOfAFleet : public FleetFixture {
 protected:
  void probe(const std::string& name, std::vector<ServedModel> models) {
    fleet_.apply_probe(spec(name), {.health = Done{},
                                    .models = std::move(models),
                                    .sources = one_source(),
                                    .load = ServerLoad{.block_size = 16}});
    tell_block_size(cache_of(name), 16);
  }
  static WorkerSpec spec(const std::string& name) {
    return spec_of("name=" + name + ",url=http://" + name + ":1");
  }
  [[nodiscard]] bool is_adapter(const std::string& name) const {
    return served_by(*fleet_.snapshot()).adapter(name).has_value();
  }
};

TEST_F(NamesOfAFleet, ExcludesTheDeviatingWorkerAndKeepsTheOthersOverlap) {
  fleet_.set_workers({spec("a"), spec("b"), spec("liar")});
  probe("liar", {{"m", "x", 100}});
  probe("a", {{"m", "", 100}});
  probe("b", {{"m", "", 100}});
  EXPECT_FALSE(is_adapter("m"));
  EXPECT_EQ(state("a"), WorkerState::Ready);
  EXPECT_EQ(state("b"), WorkerState::Ready);
  EXPECT_EQ(state("liar"), WorkerState::Excluded);
  EXPECT_NE(worker("liar")->reason.find("lists `m` as an adapter"), std::string::npos)
      << worker("liar")->reason;
  probe("liar", {{"m", "", 100}});
  EXPECT_EQ(state("liar"), WorkerState::Ready);
}

TEST_F(NamesOfAFleet, AWorkerThatIsGoneOrDownHasNoSay) {
  fleet_.set_workers({spec("a"), spec("b"), spec("c")});
  probe("a", {{"m", ""}});
  probe("b", {{"m", "x"}});
  probe("c", {{"m", "x"}});
  EXPECT_TRUE(is_adapter("m"));
  EXPECT_EQ(state("a"), WorkerState::Excluded);
  fleet_.set_workers({spec("a"), spec("b")});
  EXPECT_TRUE(is_adapter("m")) << "a tie keeps the meaning";
  Probe refused;
  refused.health = worker_error(ErrorCode::Unavailable, "connection refused", true);
  refused.refused = true;
  fleet_.apply_probe(spec("b"), refused);
  EXPECT_FALSE(is_adapter("m"));
  EXPECT_EQ(state("a"), WorkerState::Ready);
}

TEST_F(NamesOfAFleet, TheLongestContextCountsOfWorkersThatMayTakeRequests) {
  const auto longest = [this] { return served_by(*fleet_.snapshot()).prompt_tokens_max; };
  fleet_.set_workers({spec("a"), spec("small")});
  probe("a", {{"m", "", 4096}});
  probe("small", {{"m", "", 1}});
  EXPECT_EQ(longest(), 4096U);
  Probe refused;
  refused.health = worker_error(ErrorCode::Unavailable, "connection refused", true);
  refused.refused = true;
  fleet_.apply_probe(spec("a"), refused);
  EXPECT_EQ(longest(), 1U);
  fleet_.apply_probe(spec("small"), refused);
  EXPECT_EQ(longest(), 0U) << "nobody says";
}

}  // namespace
}  // namespace sightline::fleet
