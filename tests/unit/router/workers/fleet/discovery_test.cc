// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/discovery.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "router/engine/family/models.h"
#include "router/engine/vllm/server_answers.h"

namespace sightline::fleet {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(std::string(SL_SOURCE_DIR) + "/tests/data/fleet/" + name, std::ios::binary);
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

TEST(Discovery, AnUrlAloneIsEnough) {
  const Discovery found = discover(spec_of("name=w,url=http://10.0.0.7:8000"), recorded_probe());
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{0}));
  ASSERT_EQ(found.engines.size(), 1u);
  EXPECT_EQ(found.engines[0].worker, "w");
  EXPECT_EQ(found.engines[0].events, "tcp://10.0.0.7:15557");
  EXPECT_EQ(found.engines[0].replay, "tcp://10.0.0.7:15657");
  EXPECT_FALSE(found.engines[0].bind);
  EXPECT_EQ(found.engines[0].block_size_explicit, 0u) << "what it tells elsewhere is a guess";
}

TEST(Discovery, ExplicitSettingsWin) {
  const Discovery found = discover(
      spec_of("url=http://10.0.0.7:8000,events=tcp://relay:1,block_size=16"), recorded_probe());
  ASSERT_EQ(found.engines.size(), 1u);
  EXPECT_EQ(found.engines[0].events, "tcp://relay:1");
  EXPECT_FALSE(found.engines[0].bind);
  EXPECT_EQ(found.engines[0].replay, "tcp://10.0.0.7:15657");
  EXPECT_EQ(found.engines[0].block_size_explicit, 16u);
}

TEST(Discovery, AnExplicitEndpointMayBeBoundHere) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  const Discovery found =
      discover(spec_of("url=http://h:8000,events=@tcp://*:5557,replay=tcp://*:5657"), probe);
  ASSERT_EQ(found.engines.size(), 1u);
  EXPECT_EQ(found.engines[0].events, "tcp://*:5557");
  EXPECT_TRUE(found.engines[0].bind);
  EXPECT_EQ(found.engines[0].replay, "tcp://h:5657");
}

TEST(Discovery, EveryRankHasItsOwnEndpoints) {
  Probe probe = recorded_probe();
  probe.sources = vllm::parse_event_sources(recorded("kv_event_sources-dp2.json"));
  const Discovery found = discover(spec_of("url=http://h:1"), probe);
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(found.engines.size(), 2u);
  EXPECT_EQ(found.engines[1].rank, 1u);
  EXPECT_EQ(found.engines[1].events, "tcp://h:15558");
  EXPECT_EQ(found.engines[1].replay, "tcp://h:15658");
  EXPECT_TRUE(found.engines[0].several_ranks);
  EXPECT_TRUE(found.engines[1].several_ranks);
}

TEST(Discovery, GivenEndpointsAreThoseOfTheFirstRankAndPortsCountUp) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  probe.load = worker_error(ErrorCode::NotFound, "404", false);
  const Discovery found = discover(
      spec_of("name=w,url=http://h:1,events=tcp://*:5557,replay=tcp://r:5657,dp=3"), probe);
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{0, 1, 2}));
  ASSERT_EQ(found.engines.size(), 3u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(found.engines[rank].rank, rank);
    EXPECT_EQ(found.engines[rank].worker, "w");
    EXPECT_EQ(found.engines[rank].events, "tcp://h:" + std::to_string(5557 + rank));
    EXPECT_EQ(found.engines[rank].replay, "tcp://r:" + std::to_string(5657 + rank));
  }
  const Discovery bound = discover(spec_of("url=http://h:1,events=@tcp://*:5557,dp=2"), probe);
  EXPECT_EQ(bound.engines[1].events, "tcp://*:5558");
  EXPECT_TRUE(bound.engines[1].bind);
}

TEST(Discovery, AGivenEndpointServesTheRanksThatTheEngineTells) {
  Probe probe = recorded_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  const Discovery found = discover(spec_of("url=http://h:1,events=tcp://*:7000"), probe);
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(found.engines.size(), 2u);
  EXPECT_EQ(found.engines[1].events, "tcp://h:7001");
  EXPECT_EQ(found.engines[1].replay, "");
  const Discovery ipc = discover(spec_of("url=http://h:1,events=ipc:///run/kv"), probe);
  EXPECT_TRUE(ipc.engines.empty());
  EXPECT_NE(ipc.reason.find("one data-parallel rank"), std::string::npos) << ipc.reason;
}

TEST(Discovery, ARankWithoutEventSourceIsARankAllTheSame) {
  Probe probe = recorded_probe();
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  const Discovery found = discover(spec_of("url=http://h:1"), probe);
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(found.engines.size(), 1u);
  EXPECT_EQ(found.engines[0].rank, 0u);
}

TEST(Discovery, ServersOfSingleRanksKeepTheirNumbers) {
  Probe probe = recorded_probe();
  probe.sources = std::vector<EventSource>{
      {.rank = 5, .enabled = true, .endpoint = "tcp://*:5562", .replay_endpoint = "tcp://*:5662"}};
  const Discovery found = discover(spec_of("url=http://h:1,replay=tcp://*:9000,dp=1"), probe);
  EXPECT_EQ(found.rank_conflict, "");
  EXPECT_EQ(found.ranks, (std::vector<std::uint32_t>{5}));
  ASSERT_EQ(found.engines.size(), 1u);
  EXPECT_EQ(found.engines[0].events, "tcp://h:5562");
  EXPECT_FALSE(found.engines[0].several_ranks);
  EXPECT_EQ(found.engines[0].replay, "tcp://h:9000");
}

TEST(Discovery, AnotherNumberOfRanksThanConfiguredIsAContradiction) {
  Probe probe = recorded_probe();
  probe.sources = vllm::parse_event_sources(recorded("kv_event_sources-dp2.json"));
  probe.load = vllm::parse_metrics(recorded("metrics-dp2.txt"));
  EXPECT_EQ(discover(spec_of("url=http://h:1,dp=2"), probe).rank_conflict, "");
  for (const char* dp : {"1", "3"}) {
    const Discovery found = discover(spec_of("url=http://h:1,dp=" + std::string(dp)), probe);
    EXPECT_NE(found.rank_conflict.find("dp=" + std::string(dp)), std::string::npos);
    EXPECT_TRUE(found.engines.empty());
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
  EXPECT_TRUE(found.engines.empty());
}

}  // namespace
}  // namespace sightline::fleet
