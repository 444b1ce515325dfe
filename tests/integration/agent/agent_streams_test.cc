// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// An agent's streams over a real NATS, and the routers that follow them.
#include "router/replicas/agent/agent_streams.h"

#include <deque>

#include <gtest/gtest.h>

#include "router/replicas/frames/stream_codec.h"
#include "tests/integration/agent/deployment.h"

namespace sightline::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Agent;
using test::Blocks;
using test::eventually;
using test::Feed;
using test::FeedHealth;
using test::NatsServer;
using test::Router;

const frames::StreamName kW0{.worker = "w0", .rank = 0};
const frames::StreamName kW0Rank1{.worker = "w0", .rank = 1};
const frames::StreamName kW1{.worker = "w1", .rank = 0};
constexpr CacheId kFirst{1};
constexpr CacheId kSecond{2};
constexpr CacheId kThird{3};

StreamView view_of(const Agent& agent, const frames::StreamName& name) {
  for (const StreamView& view : agent.streams->views()) {
    if (view.name == name) return view;
  }
  return {};
}

TEST(AgentStreams, RoutersHoldTheBlocksOfEachRankWheneverTheyJoin) {
  const NatsServer server;
  Router early(server, "early");
  for (const auto& [cache, name] : {std::pair(kFirst, kW0), {kSecond, kW0Rank1}, {kThird, kW1}}) {
    early.feeds->add(cache, name);
  }
  Agent agent(server, 7);
  Feed first(*agent.streams, kW0, kFirst);
  Feed second(*agent.streams, kW0Rank1, kSecond);
  Feed third(*agent.streams, kW1, kThird);
  for (std::uint64_t block = 100; block < 3'000; ++block) {
    first.store(block, 1);
    second.store(2 * block, 2);
    third.store(3 * block, 3);
    if (block % 3 == 0) first.remove(block - 5);
    if (block % 500 == 0) third.restart_engine();
  }
  Router late(server, "late");
  late.feeds->add(kFirst, kW0);
  late.feeds->add(kSecond, kW0Rank1);
  late.feeds->add(kThird, kW1);
  for (const Router* router : {&early, &late}) {
    EXPECT_TRUE(router->comes_to_hold(kFirst, first.blocks())) << router->facts(kFirst).reason;
    EXPECT_TRUE(router->comes_to_hold(kSecond, second.blocks()));
    EXPECT_TRUE(router->comes_to_hold(kThird, third.blocks()));
  }
  EXPECT_EQ(view_of(agent, kW0).statistics.epochs, 1U);
  EXPECT_GE(view_of(agent, kW1).statistics.epochs, 6U);
}

TEST(AgentStreams, ALostEngineConnectionKeepsTheEpoch) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, kFirst);
  feed.store(1, 100);
  ASSERT_TRUE(router.comes_to_hold(kFirst, feed.blocks()));
  feed.tell_health(FeedHealth::Disconnected);
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "event connection"));
  feed.store(1'000, 10);
  feed.tell_health(FeedHealth::Verified);
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
  EXPECT_EQ(view_of(agent, kW0).statistics.epochs, 1U);
}

TEST(AgentStreams, AReplacedFeedBeginsANewEpoch) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  Agent agent(server, 7);
  agent.want({{.name = kW0, .reason = "asked again"}});
  auto feed = std::make_unique<Feed>(*agent.streams, kW0, kFirst);
  feed->store(1, 100);
  ASSERT_TRUE(router.comes_to_hold(kFirst, feed->blocks()));
  const auto epoch = view_of(agent, kW0).epoch;
  feed.reset();
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "asked again")) << router.facts(kFirst).reason;
  EXPECT_FALSE(view_of(agent, kW0).epoch);
  Feed next(*agent.streams, kW0, kSecond);
  next.store(500, 3);
  EXPECT_TRUE(router.comes_to_hold(kFirst, next.blocks())) << router.facts(kFirst).reason;
  EXPECT_NE(view_of(agent, kW0).epoch, epoch);
}

TEST(AgentStreams, AMissingWorkersStreamGivesTheReason) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  Agent agent(server, 7);
  agent.want({{.name = kW0, .reason = "it refuses connections"}});
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "it refuses connections"));
  agent.want({{.name = kW0, .reason = "it loads its model"}});
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "it loads its model"));
  agent.want({});
  EXPECT_TRUE(eventually([&] { return agent.streams->views().empty(); }));
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "agent")) << router.facts(kFirst).reason;
}

TEST(AgentStreams, TheAgentReadsOnWithoutNatsAndRoutersCatchUp) {
  NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, kFirst);
  feed.store(1, 1'000);
  ASSERT_TRUE(router.comes_to_hold(kFirst, feed.blocks()));
  server.kill();
  ASSERT_TRUE(eventually([&] { return !agent.host.events->connected(); }));
  for (std::uint64_t block = 5'000; block < 9'000; ++block) feed.store(block, 1);
  for (std::uint64_t block = 1; block < 500; ++block) feed.remove(block);
  ASSERT_TRUE(eventually([&] { return view_of(agent, kW0).unsent > 0; }));
  server.start();
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
  EXPECT_EQ(view_of(agent, kW0).statistics.epochs, 1U);
  agent.streams->refresh_metrics();
  EXPECT_GT(agent.host.value("agent_unsent_total{worker=\"w0\"}"), 0);
}

TEST(AgentStreams, AdaptsMessagesToTheServersLimit) {
  NatsServer server("max_payload: 8192");
  server.kill();
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, kFirst);
  EXPECT_FALSE(agent.streams->check().ok());
  feed.store(1, 50'000);
  server.start();
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
  EXPECT_TRUE(eventually([&] { return agent.streams->check().ok(); }));
  feed.store(100'000, 20'000);
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
}

TEST(AgentStreams, NamesAServerWhoseLimitIsTooSmall) {
  const NatsServer server("max_payload: 1024");
  Agent agent(server, 7);
  const auto names_it = [&] {
    const auto checked = agent.streams->check();
    return !checked.ok() && checked.error().message.find("messages of at most 1024 bytes") < 100;
  };
  EXPECT_TRUE(eventually(names_it));
}

TEST(AgentStreams, TheReasonNamesTwoAgentsUntilOneIsGone) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  Agent one(server, 7);
  auto two = std::make_unique<Agent>(server, 8);
  Feed feed(*one.streams, kW0, kFirst);
  feed.store(1, 10);
  ASSERT_TRUE(router.comes_to_hold(kFirst, feed.blocks()));
  {
    Feed other(*two->streams, kW0, kFirst);
    other.store(1, 10);
    EXPECT_TRUE(router.comes_to_doubt(kFirst, "agent-7")) << router.facts(kFirst).reason;
    EXPECT_TRUE(router.comes_to_doubt(kFirst, "agent-8")) << router.facts(kFirst).reason;
    two->streams->stop();
  }
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
}

TEST(AgentStreams, ManyResyncRequestsReachTheEngineOnce) {
  const NatsServer server;
  std::deque<Router> routers;
  for (const char* name : {"a", "b", "c"}) routers.emplace_back(server, name);
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, CacheId{21});
  feed.store(1, 10);
  for (Router& router : routers) router.feeds->add(kFirst, kW0);
  for (Router& router : routers) ASSERT_TRUE(router.comes_to_hold(kFirst, feed.blocks()));
  for (Router& router : routers) router.feeds->relearn(kFirst);
  ASSERT_TRUE(eventually([&] { return agent.relearns > 0; }));
  // All requests have arrived when a later question of each router is answered.
  const auto answered = view_of(agent, kW0).statistics.questions;
  for (Router& router : routers) router.feeds->look(kFirst);
  ASSERT_TRUE(eventually([&] { return view_of(agent, kW0).statistics.questions >= answered + 3; }));
  EXPECT_EQ(agent.relearns, 1);
  EXPECT_EQ(agent.relearnt, 2U * 21 + 1);
  EXPECT_GE(agent.looks, 1);
}

TEST(AgentStreams, ADrainedAgentReportsItOnEveryStream) {
  const NatsServer server;
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  router.feeds->add(kSecond, kW1);
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, kFirst);
  ASSERT_TRUE(router.comes_to_hold(kFirst, {}));
  EXPECT_FALSE(router.facts(kFirst).draining);
  agent.streams->drain();
  EXPECT_TRUE(eventually([&] { return router.facts(kFirst).draining; }));
  Feed later(*agent.streams, kW1, kSecond);
  EXPECT_TRUE(eventually([&] { return router.facts(kSecond).draining; }));
}

// Others are served during the flood, by an outsider without the key and by a router with it that
// never stops.
TEST(AgentStreams, AFloodOfRequestsTakesBoundedMemory) {
  const NatsServer server;
  publisher::PublisherOptions options;
  options.readers.asks_max = 50;
  options.replies_bytes_max = 4U << 20U;
  Agent agent(server, 7, options);
  Feed feed(*agent.streams, kW0, kFirst);
  feed.store(1, 20'000);
  test::Host flooder(server, "flooder");
  const std::string asks = flooder.subjects.asks("w0", 0);
  ASSERT_TRUE(eventually([&] { return flooder.control->connected(); }));
  ASSERT_TRUE(eventually([&] { return view_of(agent, kW0).epoch.has_value(); }));
  const std::uint64_t epoch = *view_of(agent, kW0).epoch;
  const auto sealed = [&](const frames::Body& body) {
    return flooder.sealer.seal(asks, frames::encode({.stream = kW0, .body = body}),
                               envelope::kAskVersion);
  };
  // The agent's first draw names its stream.
  frames::Freshness fresh{.agent = test::Draw(7).next(), .number = 0};
  for (int i = 0; i < 3'000; ++i) {
    ++fresh.number;
    const frames::Body dump =
        frames::DumpAsk{.reader = "flooder", .epoch = epoch, .freshness = fresh};
    const frames::Body range = frames::RangeAsk{
        .reader = "flooder", .epoch = epoch, .from = 1, .to = 1'000'000, .freshness = fresh};
    const std::string ask = sealed(i % 2 == 0 ? dump : range);
    flooder.control->publish(asks, ask);
    flooder.control->publish(asks, ask);
    if (i % 30 == 0) flooder.control->publish(asks, std::string(100'000, 'x'));
    if (i % 30 == 1) flooder.control->publish(asks, std::string(1'000, '\2'));
  }
  Router router(server, "a");
  router.feeds->add(kFirst, kW0);
  EXPECT_TRUE(router.comes_to_hold(kFirst, feed.blocks())) << router.facts(kFirst).reason;
  // Blocks, two dumps at most, the ring, and replies that wait.
  EXPECT_LT(view_of(agent, kW0).memory_bytes, 20'000U * 80 + options.replies_bytes_max);
  // The flooder has a connection of its own. Its messages may arrive later than the router's.
  const auto refused = [&](const std::string& reason) {
    agent.streams->refresh_metrics();
    return agent.host.value("agent_asks_refused_total{reason=\"" + reason + "\"}");
  };
  EXPECT_TRUE(eventually([&] { return refused("reader-limit") > 100; }));
  EXPECT_TRUE(eventually([&] { return refused("repeated") > 100; }));
  EXPECT_TRUE(eventually([&] { return refused("too-large") > 10; }));
  EXPECT_TRUE(eventually([&] { return refused("wrong-tag") > 10; }));
}

TEST(AgentStreams, BlocksOfAnEndedAgentStopCountingImmediately) {
  const NatsServer server;
  follower::FollowerOptions patient;
  patient.stale_after = seconds(3'600);
  Router router(server, "a", patient);
  router.feeds->add(kFirst, kW0);
  Agent agent(server, 7);
  Feed feed(*agent.streams, kW0, kFirst);
  feed.store(1, 10);
  ASSERT_TRUE(router.comes_to_hold(kFirst, feed.blocks()));
  agent.streams->stop();
  EXPECT_TRUE(router.comes_to_doubt(kFirst, "agent")) << router.facts(kFirst).reason;
}

}  // namespace
}  // namespace sightline::agent
