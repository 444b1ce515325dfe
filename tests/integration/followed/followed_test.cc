// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Routers' ends of streams over a real NATS, with agents whose blocks the test decides.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"
#include "router/replicas/followed/followed_feeds.h"
#include "tests/integration/followed/agent.h"
#include "tests/support/eventually.h"
#include "tests/support/scarce_index.h"

namespace sightline::followed {
namespace {

using operations::FeedHealth;
using operations::Tier;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Agent;
using test::eventually;
using test::NatsServer;
using Blocks = Agent::Blocks;

// The rules of a deployment, with shorter times for tests.
FollowedOptions quick() {
  FollowedOptions options;
  options.follower.stale_after = milliseconds(1'500);
  options.follower.dropped_after = milliseconds(4'000);
  return options;
}

struct Router {
  Router(const NatsServer& server, const std::string& name, FollowedOptions options = quick()) {
    const auto connect = [&](nats::Sending sending) {
      auto made = nats::Connection::create({test::nats_settings(server), name, sending}, metrics,
                                           system_clock());
      return std::move(*made);
    };
    events = connect(nats::Sending::InBatches);
    control = connect(nats::Sending::AtOnce);
    options.on_change = [this](CacheId cache, const operations::CacheFacts& now) {
      const MutexLock lock(mutex);
      told[cache].push_back(now);
    };
    feeds = std::make_unique<FollowedFeeds>(
        std::move(options), FollowedFeeds::Deps{.events = *events,
                                                .control = *control,
                                                .subjects = subjects,
                                                .sealer = sealer,
                                                .index = scarce,
                                                .held = index,
                                                .removals = removals,
                                                .clock = system_clock(),
                                                .reader = name,
                                                .draw = [this] { return rng.next(); }});
  }

  [[nodiscard]] Blocks held(CacheId cache) const {
    Blocks blocks;
    for (const auto key : index.held(cache, Tier::Gpu)) blocks.insert(key.value);
    return blocks;
  }
  [[nodiscard]] bool is_verified(CacheId cache) const {
    const auto status = feeds->status(cache);
    return status && status->facts.health == FeedHealth::Verified;
  }
  [[nodiscard]] std::string reason(CacheId cache) const {
    const auto status = feeds->status(cache);
    return status ? status->facts.reason : "not followed";
  }
  [[nodiscard]] bool comes_to_hold(CacheId cache, const Agent& agent) const {
    return eventually([&] { return is_verified(cache) && held(cache) == agent.blocks(); });
  }
  // The facts that it got last.
  [[nodiscard]] operations::CacheFacts last_told(CacheId cache) const {
    const MutexLock lock(mutex);
    const auto found = told.find(cache);
    return found == told.end() ? operations::CacheFacts{} : found->second.back();
  }

  runtime::Metrics metrics;
  const contract::Subjects subjects{"default/default", "0"};
  const envelope::Sealer sealer{contract::development_identity_key(),
                                {.scope = "default/default", .revision = "0", .fingerprint = "f"}};
  Rng rng{5};
  index::ExactIndex index;
  test::ScarceIndex scarce{index};
  index::RemovalJournal removals;
  mutable Mutex mutex;
  std::map<CacheId, std::vector<operations::CacheFacts>> told SL_GUARDED_BY(mutex);
  std::unique_ptr<nats::Connection> events;
  std::unique_ptr<nats::Connection> control;
  std::unique_ptr<FollowedFeeds> feeds;
};

constexpr CacheId kFirst{1};
constexpr CacheId kSecond{2};
const frames::StreamName kW0{.worker = "w0", .rank = 0};
const frames::StreamName kW1{.worker = "w1", .rank = 0};

TEST(FollowedFeeds, TwoRoutersHoldTheAgentsBlocksAndReportTheFacts) {
  const NatsServer server;
  Agent first(server, kW0, 11);
  Agent second(server, kW1, 12);
  first.store({1, 2, 3});
  std::vector<std::unique_ptr<Router>> routers;
  for (const std::string name : {"a", "b"}) {
    routers.push_back(std::make_unique<Router>(server, name));
    routers.back()->feeds->add(kFirst, kW0);
    routers.back()->feeds->add(kSecond, kW1);
  }
  for (std::uint64_t block = 100; block < 2'000; ++block) {
    first.store({block});
    second.store({block, block + 10'000});
    if (block % 3 == 0) first.remove(block - 5);
  }
  for (const auto& router : routers) {
    EXPECT_TRUE(router->comes_to_hold(kFirst, first)) << router->reason(kFirst);
    EXPECT_TRUE(router->comes_to_hold(kSecond, second)) << router->reason(kSecond);
    EXPECT_TRUE(
        eventually([&] { return router->last_told(kFirst).health == FeedHealth::Verified; }));
  }
}

TEST(FollowedFeeds, CountsOnlyRanksWithAnAgentAndClearsRemovedOnes) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  EXPECT_TRUE(
      eventually([&] { return router.last_told(kFirst).reason == "its agent has not answered"; }));
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  router.feeds->remove(kFirst);
  EXPECT_FALSE(router.feeds->status(kFirst));
  EXPECT_TRUE(eventually([&] { return router.index.blocks_total() == 0; }))
      << "its memory is given back while nothing comes";
}

TEST(FollowedFeeds, AFrameWithoutMemoryRestartsTheStream) {
  const NatsServer server;
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
  for (std::uint64_t block = 10; block < 13; ++block) {
    router.scarce.fail_next();
    agent.store({block});
    EXPECT_TRUE(eventually([&] { return router.scarce.has_failed(); }));
    EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
  }
  router.feeds->remove(kFirst);
  EXPECT_TRUE(eventually([&] { return router.held(kFirst).empty(); }));
}

TEST(FollowedFeeds, NothingIsVerifiedWhileThereIsNoMemory) {
  const NatsServer server;
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
  router.scarce.fail_always(true);
  agent.store({10});
  EXPECT_TRUE(eventually([&] { return !router.is_verified(kFirst); }));
  router.scarce.fail_always(false);
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, AFloodOfOneStreamDoesNotKeepAnotherWaiting) {
  const NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW1, 12);
  agent.store({1});
  router.feeds->add(kFirst, kW0);
  router.feeds->add(kSecond, kW1);
  ASSERT_TRUE(router.comes_to_hold(kSecond, agent));
  const auto refused = [&] {
    return router.feeds->status(kFirst)->refused.at(static_cast<std::size_t>(Refusal::WrongTag));
  };
  // Messages that are no frames, as many as the router reads. More of them would wait before all
  // streams.
  const Router forger(server, "forger");
  const std::string subject = router.subjects.events(kW0.worker, kW0.rank);
  const std::string junk = static_cast<char>(envelope::kVersion) + std::string(4'096, 'x');
  constexpr std::uint64_t kAtOnce = 50;
  WorkerThread flood("flood", [&](const std::stop_token& stop) {
    Mutex mutex;
    StopCondVar over;
    const MutexLock lock(mutex);
    while (!stop.stop_requested()) {
      const std::uint64_t read = refused();
      for (std::uint64_t i = 0; i < kAtOnce; ++i) forger.control->publish(subject, junk);
      // Some may be dropped for lack of room.
      for (int i = 0; i < 20 && refused() < read + kAtOnce; ++i) {
        over.wait_until(mutex, stop, system_clock().now() + milliseconds(10), [] { return false; });
      }
    }
  });
  ASSERT_TRUE(eventually([&] { return refused() > 1'000; }));
  const auto refused_before = refused();
  for (std::uint64_t block = 2; block < 40; ++block) {
    agent.store({block});
    ASSERT_TRUE(eventually([&] { return router.held(kSecond) == agent.blocks(); }));
  }
  EXPECT_EQ(router.feeds->status(kSecond)->losses, 0U);
  EXPECT_TRUE(eventually([&] { return router.is_verified(kSecond); })) << router.reason(kSecond);
  EXPECT_TRUE(eventually([&] { return refused() > refused_before; })) << "the flood went on";
  flood.request_stop();
  flood.join();
}

TEST(FollowedFeeds, FramesWithoutRoomAreRequestedAgain) {
  const NatsServer server;
  FollowedOptions options = quick();
  options.stream_messages_max = 2;
  Router router(server, "a", options);
  Agent agent(server, kW0, 11);
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  std::uint64_t block = 0;
  const bool has_lost = eventually([&] {
    for (int i = 0; i < 2'000; ++i) {
      std::vector<std::uint64_t> blocks;
      for (int j = 0; j < 100; ++j) blocks.push_back(++block);
      agent.store(blocks);
    }
    return router.feeds->status(kFirst)->lost > 0;
  });
  EXPECT_TRUE(has_lost);
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, StreamsAreUnverifiedWithoutNatsAndRecover) {
  NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  server.kill();
  agent.remove(2);
  agent.store({4, 5});
  ASSERT_TRUE(eventually([&] { return !router.is_verified(kFirst); }));
  EXPECT_EQ(router.reason(kFirst), "NATS cannot be reached: messages of its agent do not arrive");
  server.start();
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, AFrozenAgentExpiresAndIsFollowedAgainAfterwards) {
  const NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  const Instant frozen = system_clock().now();
  agent.freeze();
  // At first the reason may be that its answers are late.
  ASSERT_TRUE(eventually([&] {
    return router.reason(kFirst).starts_with("its agent agent-11 has been dead since ");
  })) << router.reason(kFirst);
  EXPECT_FALSE(router.is_verified(kFirst));
  EXPECT_EQ(router.held(kFirst), agent.blocks()) << "it may go on";
  ASSERT_TRUE(eventually([&] { return router.held(kFirst).empty(); }));
  EXPECT_GE(system_clock().now() - frozen, milliseconds(2'900));
  agent.thaw();
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, TwoAgentsDoNotCountUntilOneIsLeft) {
  const NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  auto other = std::make_unique<Agent>(server, kW0, 12);
  other->store({7});
  ASSERT_TRUE(eventually([&] { return !router.is_verified(kFirst); }));
  EXPECT_EQ(router.reason(kFirst), "two agents serve it: agent-11 and agent-12");
  EXPECT_EQ(router.feeds->status(kFirst)->at.agents.size(), 2U);
  other.reset();
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, AReplacementAgentBringsItsOwnEpoch) {
  const NatsServer server;
  Router router(server, "a");
  auto agent = std::make_unique<Agent>(server, kW0, 11);
  agent->store({1, 2, 3});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, *agent));
  agent.reset();
  agent = std::make_unique<Agent>(server, kW0, 12);
  agent->store({3, 4});
  EXPECT_TRUE(router.comes_to_hold(kFirst, *agent)) << router.reason(kFirst);
  EXPECT_EQ(router.feeds->status(kFirst)->at.agent->name, "agent-12");
}

TEST(FollowedFeeds, ARestartedEngineClaimsNoEarlierBlocks) {
  const NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW0, 11);
  agent.store({1, 2, 3});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  const Instant restarted = system_clock().now();
  agent.restart_engine();
  ASSERT_TRUE(eventually([&] { return router.held(kFirst).empty(); }));
  EXPECT_LT(system_clock().now() - restarted, seconds(5));
  agent.store({9});
  EXPECT_TRUE(router.comes_to_hold(kFirst, agent)) << router.reason(kFirst);
}

TEST(FollowedFeeds, TheAuditsRequestReachesTheAgentOnce) {
  const NatsServer server;
  Router router(server, "a");
  Agent agent(server, kW0, 11);
  agent.store({1});
  router.feeds->add(kFirst, kW0);
  ASSERT_TRUE(router.comes_to_hold(kFirst, agent));
  for (int i = 0; i < 5; ++i) router.feeds->relearn(kFirst);
  ASSERT_TRUE(eventually([&] { return agent.relearns() > 0; }));
  ASSERT_TRUE(
      eventually([&] { return router.feeds->status(kFirst)->statistics.relearn_put_off == 4; }));
  EXPECT_EQ(agent.relearns(), 1U);
  const auto before = router.feeds->status(kFirst)->facts.caught_up;
  EXPECT_TRUE(eventually([&] {
    router.feeds->look(kFirst);
    const auto now = router.feeds->status(kFirst)->facts.caught_up;
    return now && (!before || *now > *before);
  })) << "a look tells up to when all is applied";
}

}  // namespace
}  // namespace sightline::followed
