// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/discovery.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "router/engine/family/models.h"
#include "router/engine/vllm/vllm_answers.h"
#include "tests/support/paths.h"

namespace sightline::fleet {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(test::in_sources("tests/data/fleet/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

contract::WorkerSpec spec_of(const std::string& text) { return *contract::parse_worker(text); }

// A probe of a healthy engine with one rank, as recorded.
Probe recorded_probe() {
  Probe probe;
  probe.models = family::parse_models(recorded("models-lora.json"));
  probe.sources = vllm::parse_event_sources(recorded("kv_event_sources.json"));
  probe.load = vllm::parse_metrics(recorded("metrics-busy.txt"));
  return probe;
}

using Numbers = std::vector<std::uint32_t>;
Numbers numbers_of(const Discovery& found) {
  Numbers numbers;
  for (const FoundRank& rank : found.ranks) numbers.push_back(rank.number);
  return numbers;
}

std::size_t with_events(const Discovery& found) {
  std::size_t count = 0;
  for (const FoundRank& rank : found.ranks) count += rank.events ? 1 : 0;
  return count;
}

TEST(Discovery, AnUrlAloneIsEnough) {
  const Discovery found = discover(spec_of("name=w,url=http://10.0.0.7:8000"), recorded_probe());
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(numbers_of(found), (Numbers{0}));
  ASSERT_EQ(with_events(found), 1u);
  EXPECT_EQ(found.ranks.at(0).events.value().events, "tcp://10.0.0.7:15557");
  EXPECT_EQ(found.ranks.at(0).events.value().replay, "tcp://10.0.0.7:15657");
  EXPECT_FALSE(found.ranks.at(0).events.value().bind);
}

TEST(Discovery, AgentGivesEachRankAFeedWithoutEndpoint) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "no such path", false);
  probe.load = worker_error(ErrorCode::NotFound, "404", false);
  const Discovery found = discover(spec_of("url=http://h:1,agent=true,dp=2"), probe);
  EXPECT_EQ(found.reason, "");
  ASSERT_EQ(with_events(found), 2u);
  EXPECT_TRUE(found.ranks.at(1).events.value().by_agent);
  EXPECT_EQ(found.ranks.at(1).events.value().events, "");
}

TEST(Discovery, ExplicitSettingsWin) {
  const Discovery found = discover(
      spec_of("url=http://10.0.0.7:8000,events=tcp://relay:1,block_size=16"), recorded_probe());
  ASSERT_EQ(with_events(found), 1u);
  EXPECT_EQ(found.ranks.at(0).events.value().events, "tcp://relay:1");
  EXPECT_FALSE(found.ranks.at(0).events.value().bind);
  EXPECT_EQ(found.ranks.at(0).events.value().replay, "tcp://10.0.0.7:15657");
}

TEST(Discovery, AnExplicitEndpointMayBeBoundHere) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  const Discovery found =
      discover(spec_of("url=http://h:8000,events=@tcp://*:5557,replay=tcp://*:5657"), probe);
  ASSERT_EQ(with_events(found), 1u);
  EXPECT_EQ(found.ranks.at(0).events.value().events, "tcp://*:5557");
  EXPECT_TRUE(found.ranks.at(0).events.value().bind);
  EXPECT_EQ(found.ranks.at(0).events.value().replay, "tcp://h:5657");
}

TEST(Discovery, EveryRankHasItsOwnEndpoints) {
  Probe probe = recorded_probe();
  probe.sources = vllm::parse_event_sources(recorded("kv_event_sources-dp2.json"));
  const Discovery found = discover(spec_of("url=http://h:1"), probe);
  EXPECT_EQ(numbers_of(found), (Numbers{0, 1}));
  ASSERT_EQ(with_events(found), 2u);
  EXPECT_EQ(found.ranks[1].number, 1u);
  EXPECT_EQ(found.ranks.at(1).events.value().events, "tcp://h:15558");
  EXPECT_EQ(found.ranks.at(1).events.value().replay, "tcp://h:15658");
}

TEST(Discovery, GivenEndpointsStartAtTheFirstRankAndCountUp) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  probe.load = worker_error(ErrorCode::NotFound, "404", false);
  const Discovery found = discover(
      spec_of("name=w,url=http://h:1,events=tcp://*:5557,replay=tcp://r:5657,dp=3"), probe);
  EXPECT_EQ(numbers_of(found), (Numbers{0, 1, 2}));
  ASSERT_EQ(with_events(found), 3u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(found.ranks[rank].number, rank);
    EXPECT_EQ(found.ranks.at(rank).events.value().events, "tcp://h:" + std::to_string(5557 + rank));
    EXPECT_EQ(found.ranks.at(rank).events.value().replay, "tcp://r:" + std::to_string(5657 + rank));
  }
  const Discovery bound = discover(spec_of("url=http://h:1,events=@tcp://*:5557,dp=2"), probe);
  EXPECT_EQ(bound.ranks.at(1).events.value().events, "tcp://*:5558");
  EXPECT_TRUE(bound.ranks.at(1).events.value().bind);
}

TEST(Discovery, GivenEndpointServesTheEnginesRanks) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  const Discovery found = discover(spec_of("url=http://h:1,events=tcp://*:7000"), probe);
  EXPECT_EQ(numbers_of(found), (Numbers{0, 1}));
  ASSERT_EQ(with_events(found), 2u);
  EXPECT_EQ(found.ranks.at(1).events.value().events, "tcp://h:7001");
  EXPECT_EQ(found.ranks.at(1).events.value().replay, "");
  const Discovery ipc = discover(spec_of("url=http://h:1,events=ipc:///run/kv"), probe);
  EXPECT_FALSE(ipc.has_events());
  EXPECT_NE(ipc.reason.find("one data-parallel rank"), std::string::npos) << ipc.reason;
}

TEST(Discovery, ARankWithoutEventSourceIsARankAllTheSame) {
  Probe probe = recorded_probe();
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  const Discovery found = discover(spec_of("url=http://h:1"), probe);
  EXPECT_EQ(numbers_of(found), (Numbers{0, 1}));
  ASSERT_EQ(with_events(found), 1u);
  EXPECT_TRUE(found.ranks[0].events);
}

TEST(Discovery, EventsOfUnknownRanksBelongToNoRank) {
  Probe probe = recorded_probe();
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  probe.sources = std::vector<EventSource>{{.rank = 5, .enabled = true, .endpoint = "tcp://*:1"}};
  const Discovery found = discover(spec_of("url=http://h:1"), probe);
  EXPECT_EQ(numbers_of(found), (Numbers{0, 1}));
  EXPECT_FALSE(found.has_events());
  EXPECT_NE(found.reason.find("name different data-parallel ranks"), std::string::npos)
      << found.reason;
}

TEST(Discovery, ServersOfSingleRanksKeepTheirNumbers) {
  Probe probe = recorded_probe();
  probe.sources = std::vector<EventSource>{
      {.rank = 5, .enabled = true, .endpoint = "tcp://*:5562", .replay_endpoint = "tcp://*:5662"}};
  const Discovery found = discover(spec_of("url=http://h:1,replay=tcp://*:9000,dp=1"), probe);
  EXPECT_EQ(found.rank_conflict, "");
  EXPECT_EQ(numbers_of(found), (Numbers{5}));
  ASSERT_EQ(with_events(found), 1u);
  EXPECT_EQ(found.ranks.at(0).events.value().events, "tcp://h:5562");
  EXPECT_EQ(found.ranks.at(0).events.value().replay, "tcp://h:9000");
}

TEST(Discovery, AnotherNumberOfRanksThanConfiguredIsAContradiction) {
  Probe probe = recorded_probe();
  probe.sources = vllm::parse_event_sources(recorded("kv_event_sources-dp2.json"));
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  EXPECT_EQ(discover(spec_of("url=http://h:1,dp=2"), probe).rank_conflict, "");
  for (const char* dp : {"1", "3"}) {
    const Discovery found = discover(spec_of("url=http://h:1,dp=" + std::string(dp)), probe);
    EXPECT_NE(found.rank_conflict.find("dp=" + std::string(dp)), std::string::npos);
    EXPECT_FALSE(found.has_events());
    EXPECT_EQ(found.ranks.size(), 1u);
  }
}

TEST(Discovery, WhatCannotBeKnownIsSaid) {
  const auto spec = spec_of("url=http://h:1");
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  EXPECT_NE(discover(spec, probe).reason.find("add events="), std::string::npos);
  probe.sources = worker_error(ErrorCode::Timeout, "no answer within 2000 ms", true);
  EXPECT_NE(discover(spec, probe).reason.find("no answer within 2000 ms"), std::string::npos);
  probe.sources = std::vector<EventSource>{};
  EXPECT_NE(discover(spec, probe).reason.find("no KV event source"), std::string::npos);
  probe.sources = std::vector<EventSource>{{.rank = 0}};
  EXPECT_NE(discover(spec, probe).reason.find("--kv-events-config"), std::string::npos);
  probe.sources =
      std::vector<EventSource>{{.rank = 0, .enabled = true, .endpoint = "tcp://0.0.0.0:5557"}};
  const Discovery found = discover(spec, probe);
  EXPECT_NE(found.reason.find("configure it with tcp://*:5557"), std::string::npos);
  EXPECT_FALSE(found.has_events());
}

}  // namespace
}  // namespace sightline::fleet
