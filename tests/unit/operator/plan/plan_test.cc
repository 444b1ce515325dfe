// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/plan/plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::plan {
namespace {

using crd::Strategy;

PoolCount all_there(std::int64_t count) {
  return {.wanted = count, .pods = count, .routable = count};
}

// Controllers and pods that follow their orders after a random time.
class ClusterState {
 public:
  explicit ClusterState(std::uint64_t seed) : rng_(seed) {}

  [[nodiscard]] std::vector<Revision> observed() const {
    std::vector<Revision> revisions;
    for (const auto& [name, pools] : pods_) {
      Revision revision{.name = name, .pools = {}};
      for (const auto& [pool, pods] : pools) {
        revision.pools[pool] = {.wanted = pods.wanted,
                                .pods = pods.starting + pods.routable + pods.ending,
                                .routable = pods.routable};
      }
      revisions.push_back(std::move(revision));
    }
    return revisions;
  }
  void ask(const std::map<std::string, Replicas>& replicas) {
    for (const auto& [name, pools] : replicas) {
      for (const auto& [pool, wanted] : pools) pods_[name][pool].wanted = wanted;
    }
  }
  // Some time passes.
  void pass() {
    for (auto& [name, pools] : pods_) {
      for (auto& [pool, pods] : pools) pass(pods);
    }
  }
  // All orders have been carried out.
  void settle() {
    for (int i = 0; i < 200; ++i) pass();
  }
  [[nodiscard]] std::int64_t pods(const std::string& pool) const {
    return sum(pool, [](const Pods& p) { return p.starting + p.routable + p.ending; });
  }
  [[nodiscard]] std::int64_t routable(const std::string& pool) const {
    return sum(pool, [](const Pods& p) { return p.routable; });
  }
  [[nodiscard]] std::size_t revisions() const {
    std::size_t count = 0;
    for (const auto& [name, pools] : pods_) {
      count += std::any_of(pools.begin(), pools.end(), [](const auto& one) {
        const Pods& p = one.second;
        return p.starting + p.routable + p.ending > 0;
      });
    }
    return count;
  }

 private:
  struct Pods {
    std::int64_t wanted = 0;
    std::int64_t starting = 0;
    std::int64_t routable = 0;
    std::int64_t ending = 0;
  };

  void pass(Pods& pods) {
    if (pods.starting + pods.routable < pods.wanted) ++pods.starting;
    // Pods that are not routable go first, as a controller chooses.
    if (pods.starting + pods.routable > pods.wanted) {
      --(pods.starting > 0 ? pods.starting : pods.routable);
      ++pods.ending;
    }
    if (pods.starting > 0 && rng_.below(3) == 0) --pods.starting, ++pods.routable;
    if (pods.ending > 0 && rng_.below(3) == 0) --pods.ending;
  }
  template <class Of>
  [[nodiscard]] std::int64_t sum(const std::string& pool, Of of) const {
    std::int64_t total = 0;
    for (const auto& [name, pools] : pods_) {
      const auto found = pools.find(pool);
      if (found != pools.end()) total += of(found->second);
    }
    return total;
  }

  Rng rng_;
  std::map<std::string, std::map<std::string, Pods>> pods_;
};

TEST(Plan, TheFirstRevisionIsAskedForWhole) {
  const Plan plan = next({.revision = "a", .replicas = {{"p", 3}}}, {}, {});
  EXPECT_EQ(plan.replicas.at("a").at("p"), 3);
  EXPECT_EQ(plan.phase, Phase::Moving);
}

TEST(Plan, CompletesWhenOnlyTheTargetHasRoutablePods) {
  const RolloutTarget target{.revision = "a", .replicas = {{"p", 2}}};
  const auto phase = [&](const PoolCount& count, std::vector<Revision> more = {}) {
    more.push_back({.name = "a", .pools = {{"p", count}}});
    return next(target, more, {}).phase;
  };
  EXPECT_EQ(phase(all_there(2)), Phase::Completed);
  EXPECT_EQ(phase({.wanted = 2, .pods = 2, .routable = 1}), Phase::Moving);
  EXPECT_EQ(phase({.wanted = 2, .pods = 3, .routable = 2}), Phase::Moving) << "one ends";
  EXPECT_EQ(phase(all_there(2), {{.name = "b", .pools = {{"p", {.pods = 1}}}}}), Phase::Moving)
      << "an old one ends";
  EXPECT_EQ(phase(all_there(2), {{.name = "b", .pools = {{"p", {}}}}}), Phase::Completed);
}

TEST(Plan, WithoutSurgeAnOldWorkerGoesBeforeANewOneComes) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 3}}};
  const Rules rules{.max_surge = 0, .max_unavailable = 1};
  auto plan = next(target, {{.name = "a", .pools = {{"p", all_there(3)}}}}, rules);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 0);
  plan = next(target, {{.name = "a", .pools = {{"p", {.wanted = 2, .pods = 3, .routable = 2}}}}},
              rules);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 0) << "the one that ends holds its GPU";
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
  plan = next(target, {{.name = "a", .pools = {{"p", all_there(2)}}}}, rules);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 1);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
}

TEST(Plan, ReadyButUnroutableWorkersDoNotCount) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 2}}};
  const std::vector<Revision> observed = {
      {.name = "a", .pools = {{"p", all_there(2)}}},
      {.name = "b", .pools = {{"p", {.wanted = 1, .pods = 1, .routable = 0}}}}};
  const auto plan = next(target, observed, {.max_surge = 1, .max_unavailable = 0});
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
}

TEST(Plan, RecreateWaitsUntilNothingIsLeft) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 2}}};
  const Rules rules{.strategy = Strategy::Recreate};
  auto plan = next(target, {{.name = "a", .pools = {{"p", all_there(2)}}}}, rules);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 0);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 0);
  plan = next(target, {{.name = "a", .pools = {{"p", {.wanted = 0, .pods = 1}}}}}, rules);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 0);
  plan = next(target, {{.name = "a", .pools = {{"p", {}}}}}, rules);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 2);
}

TEST(Plan, BlueGreenKeepsTheOldUntilAllNewAreRoutable) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 2}}};
  const Rules rules{.strategy = Strategy::BlueGreen};
  const Revision old{.name = "a", .pools = {{"p", all_there(2)}}};
  auto plan = next(target, {old}, rules);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
  EXPECT_EQ(plan.replicas.at("b").at("p"), 2);
  plan = next(target, {old, {.name = "b", .pools = {{"p", {2, 2, 1}}}}}, rules);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
  plan = next(target, {old, {.name = "b", .pools = {{"p", all_there(2)}}}}, rules);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 0);
}

TEST(Plan, APausedOneChangesNothingAndASuspendedOneHasNothing) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 2}}};
  const std::vector<Revision> observed = {{.name = "a", .pools = {{"p", all_there(2)}}}};
  const Plan paused = next(target, observed, {.is_paused = true});
  EXPECT_EQ(paused.phase, Phase::Paused);
  EXPECT_EQ(paused.replicas, (std::map<std::string, Replicas>{{"a", {{"p", 2}}}}));
  const Plan suspended = next(target, observed, {.is_suspended = true});
  EXPECT_EQ(suspended.phase, Phase::Suspended);
  EXPECT_EQ(suspended.replicas, (std::map<std::string, Replicas>{{"a", {{"p", 0}}}}));
}

TEST(Plan, ThirdRevisionWaitsForTheSmallerOneToEnd) {
  const RolloutTarget target{.revision = "c", .replicas = {{"p", 3}}};
  const std::vector<Revision> observed = {{.name = "a", .pools = {{"p", all_there(2)}}},
                                          {.name = "b", .pools = {{"p", all_there(1)}}}};
  const Plan plan = next(target, observed, {});
  EXPECT_EQ(plan.replicas.at("b").at("p"), 0);
  EXPECT_EQ(plan.replicas.at("a").at("p"), 2);
  EXPECT_FALSE(plan.replicas.contains("c"));
  EXPECT_NE(plan.message.find("Revision c waits until revision b is gone"), std::string::npos)
      << plan.message;
}

struct Bounds {
  RolloutTarget target;
  Rules rules;
};

void expect_within(const ClusterState& cluster, const Bounds& bounds) {
  EXPECT_LE(cluster.revisions(), 2U);
  for (const auto& [pool, target] : bounds.target.replicas) {
    EXPECT_LE(cluster.pods(pool), target + bounds.rules.max_surge) << pool;
    EXPECT_GE(cluster.routable(pool), target - bounds.rules.max_unavailable) << pool;
  }
}

// Rolls from the present state until only the target exists. Checks the bounds at every moment.
void roll(ClusterState& cluster, const Bounds& bounds, int steps_max) {
  for (int step = 0; step < steps_max; ++step) {
    const Plan plan = next(bounds.target, cluster.observed(), bounds.rules);
    cluster.ask(plan.replicas);
    if (plan.phase == Phase::Completed) return;
    cluster.pass();
    expect_within(cluster, bounds);
    if (testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "it never ended: "
                << next(bounds.target, cluster.observed(), bounds.rules).message;
}

TEST(Plan, ARollingChangeStaysWithinItsBoundsAtEveryMoment) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Replicas replicas;
    for (const char* pool : {"decode", "prefill", "encode"}) {
      if (replicas.empty() || rng.below(2) == 0) replicas[pool] = 1 + rng.below(6);
    }
    Rules rules{.max_surge = static_cast<std::int64_t>(rng.below(3)),
                .max_unavailable = static_cast<std::int64_t>(rng.below(3))};
    if (rules.max_surge == 0 && rules.max_unavailable == 0) rules.max_unavailable = 1;
    ClusterState cluster(seed);
    cluster.ask({{"a", replicas}});
    cluster.settle();
    roll(cluster, {{.revision = "b", .replicas = replicas}, rules}, 2'000);
    if (testing::Test::HasFailure()) return;
  }
}

// Some steps of the roll-out, within the bounds.
void roll_for(ClusterState& cluster, const Bounds& bounds, std::uint32_t steps) {
  for (; steps > 0; --steps) {
    cluster.ask(next(bounds.target, cluster.observed(), bounds.rules).replicas);
    cluster.pass();
    expect_within(cluster, bounds);
  }
}

TEST(Plan, RevertOrNewSpecStaysWithinTheBounds) {
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Replicas replicas = {{"p", 1 + rng.below(6)}, {"q", 1 + rng.below(3)}};
    const Rules rules{.max_surge = static_cast<std::int64_t>(rng.below(2)), .max_unavailable = 1};
    ClusterState cluster(seed);
    cluster.ask({{"a", replicas}});
    cluster.settle();
    Bounds bounds;
    for (int change = 0; change < 4; ++change) {
      const std::string revision(1, static_cast<char>('a' + rng.below(4)));
      bounds = {{.revision = revision, .replicas = replicas}, rules};
      roll_for(cluster, bounds, rng.below(30));
    }
    roll(cluster, bounds, 2'000);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Plan, FrontendsFollowTheShareOfRoutableWorkers) {
  const RolloutTarget target{.revision = "b", .replicas = {{"p", 4}}};
  const auto shares = [&](std::int64_t old, std::int64_t young, std::int64_t frontends) {
    return frontends_of(frontends, target,
                        {{.name = "a", .pools = {{"p", all_there(old)}}},
                         {.name = "b", .pools = {{"p", all_there(young)}}}});
  };
  using Shares = std::map<std::string, std::int64_t>;
  EXPECT_EQ(shares(4, 0, 4), (Shares{{"a", 4}, {"b", 1}})) << "the new one's comes first";
  EXPECT_EQ(shares(3, 1, 4), (Shares{{"a", 3}, {"b", 1}}));
  EXPECT_EQ(shares(2, 2, 4), (Shares{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(shares(0, 4, 4), (Shares{{"b", 4}}));
  EXPECT_EQ(shares(1, 3, 1), (Shares{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(shares(1, 3, 0), (Shares{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(frontends_of(2, target, {}), (Shares{{"b", 2}}));
}

TEST(Plan, FrontendsFollowWorkersThatAreLentToo) {
  const RolloutTarget target{.revision = "b", .replicas = {}};
  const auto shares = [&](std::int64_t old, std::int64_t young) {
    return frontends_of(
        2, target,
        {{.name = "a", .pools = {}, .lent = old}, {.name = "b", .pools = {}, .lent = young}});
  };
  using Shares = std::map<std::string, std::int64_t>;
  EXPECT_EQ(shares(3, 0), (Shares{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(shares(3, 3), (Shares{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(shares(0, 3), (Shares{{"b", 2}}));
}

TEST(Plan, IsNotCompleteWhileAnotherRevisionUsesWhatIsLent) {
  const RolloutTarget target{.revision = "b", .replicas = {}};
  const Revision old{.name = "a", .pools = {}, .lent = 1};
  const Revision young{.name = "b", .pools = {}, .lent = 1};
  EXPECT_EQ(next(target, {old, young}, {}).phase, Phase::Moving);
  EXPECT_EQ(next(target, {young}, {}).phase, Phase::Completed);
}

}  // namespace
}  // namespace sightline::plan
