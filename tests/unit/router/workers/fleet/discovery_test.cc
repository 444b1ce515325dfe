// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/discovery.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

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
  probe.models = parse_models(recorded("models-lora.json"));
  probe.sources = parse_event_sources(recorded("kv_event_sources.json"));
  probe.load = parse_metrics(recorded("metrics-busy.txt"));
  return probe;
}

TEST(EngineModels, AdaptersAreToldFromBaseModels) {
  const auto models = parse_models(recorded("models-lora.json"));
  ASSERT_TRUE(models.ok());
  constexpr double kAsked_s = 1795263881;
  EXPECT_EQ(*models, (std::vector<ServedModel>{{"tiny", "", 4096, "models/tiny-qwen2-vl", kAsked_s},
                                               {"ad", "tiny", 0, "models/lora-ad", kAsked_s}}));
}

TEST(EngineModels, WhatIsNoModelListIsRefused) {
  std::string many = "{\"data\":[";
  for (int i = 0; i < 257; ++i) many += "{\"id\":\"m\"},";
  many.back() = ']';
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"), std::string("{\"data\":{}}"),
        std::string("{\"data\":[1]}"), std::string("{\"data\":[{\"id\":\"\"}]}"),
        std::string("{\"data\":[{\"id\":7}]}"), many + "}",
        "{\"data\":[{\"id\":\"" + std::string(300, 'x') + "\"}]}", std::string(100'000, '[')}) {
    const auto models = parse_models(body);
    ASSERT_FALSE(models.ok()) << body.substr(0, 80);
    EXPECT_EQ(models.error().code, ErrorCode::Corrupt);
  }
}

TEST(EngineModels, ALengthThatCannotBeIsNotKnown) {
  for (const char* length : {"-1", "0", "1e3", "1.5", "\"4096\"", "99999999999999999999"}) {
    const auto models =
        parse_models("{\"data\":[{\"id\":\"m\",\"max_model_len\":" + std::string(length) + "}]}");
    ASSERT_TRUE(models.ok()) << length;
    EXPECT_EQ(models->at(0).max_model_len, 0u) << length;
  }
}

TEST(EngineVersion, OnlyAVersionInItsPlaceIsRead) {
  EXPECT_EQ(parse_version(R"({"version":"0.32.0+cpu"})")->text, "0.32.0+cpu");
  for (const char* body : {"", "[]", "{}", R"({"version":null})", R"({"version":32})",
                           R"({"version":"latest"})", R"("0.32.0")"}) {
    const auto version = parse_version(body);
    ASSERT_FALSE(version.ok()) << body;
    EXPECT_EQ(version.error().code, ErrorCode::Corrupt);
  }
}

TEST(EventSources, RanksAreSortedByNumber) {
  const auto sources = parse_event_sources(recorded("kv_event_sources-dp2.json"));
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(sources->size(), 2u);
  EXPECT_EQ(sources->at(0).rank, 0u);
  EXPECT_EQ(sources->at(0).endpoint, "tcp://*:15557");
  EXPECT_EQ(sources->at(0).replay_endpoint, "tcp://*:15657");
  EXPECT_TRUE(sources->at(0).enabled);
  EXPECT_EQ(sources->at(1).rank, 1u);
  EXPECT_EQ(sources->at(1).endpoint, "tcp://*:15558");
}

TEST(EventSources, ARenderOnlyServerHasNone) {
  const auto sources = parse_event_sources("{}");
  ASSERT_TRUE(sources.ok());
  EXPECT_TRUE(sources->empty());
}

TEST(EventSources, EventsAreOffWithoutZmqPublisherOrEndpoint) {
  for (const char* entry :
       {R"({"enable_kv_cache_events":false,"publisher":"zmq","endpoint":"tcp://*:1"})",
        R"({"enable_kv_cache_events":true,"publisher":"null","endpoint":"tcp://*:1"})",
        R"({"enable_kv_cache_events":true,"publisher":"zmq","endpoint":null})", "{}"}) {
    const auto sources = parse_event_sources("{\"0\":" + std::string(entry) + "}");
    ASSERT_TRUE(sources.ok()) << entry;
    EXPECT_FALSE(sources->at(0).enabled) << entry;
  }
}

TEST(EventSources, MembersThatAreNoRanksAreRefused) {
  for (const char* body : {"[]", "{\"x\":{}}", "{\"-1\":{}}", "{\"64\":{}}", "{\"0\":1}",
                           "{\"0\":{},\"0\":{}}", "{\"0\":{},\"00\":{}}", "nonsense"}) {
    EXPECT_FALSE(parse_event_sources(body).ok()) << body;
  }
}

TEST(EngineMetrics, ABusyEngineIsReadAsRecorded) {
  const auto load = parse_metrics(recorded("metrics-busy.txt"));
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->running, 8u);
  EXPECT_EQ(load->waiting, 2u);
  EXPECT_GT(load->kv_usage, 0.0);
  EXPECT_LT(load->kv_usage, 1.0);
  EXPECT_EQ(load->block_size, 32u);
  ASSERT_EQ(load->ranks.size(), 1u);
  EXPECT_EQ(load->ranks[0].gpu_blocks, 4096u);
}

TEST(EngineMetrics, RanksAreCountedByTheirLabel) {
  const auto load = parse_metrics(recorded("metrics-dp2.txt"));
  ASSERT_TRUE(load.ok());
  ASSERT_EQ(load->ranks.size(), 2u);
  EXPECT_EQ(load->ranks[1].gpu_blocks, 8192u);
  EXPECT_EQ(load->block_size, 32u);
}

TEST(EngineMetrics, BlocksOfTheCacheThatAreNoNumberWithinTheLimitAreNotTold) {
  for (const std::string told : {"None", "-1", "1073741825", "99999999999999999999", "1e3", ""}) {
    const auto load = parse_metrics("vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"" + told +
                                    "\",block_size=\"16\"} 1\n");
    ASSERT_TRUE(load.ok());
    EXPECT_EQ(load->ranks.at(0).gpu_blocks, 0u) << told;
  }
}

TEST(EngineMetrics, OddLinesAreSkippedAndOddValuesBounded) {
  const auto load = parse_metrics(
      "# HELP vllm:num_requests_running 5\n\nvllm:num_requests_running\n"
      "vllm:num_requests_running{engine=\"0\"\n"
      "vllm:num_requests_running{engine=\"0\"} NaN\n"
      "vllm:num_requests_running{engine=\"0\",note=\"a\\\"} 9\"} 3 1700000000\n"
      "vllm:num_requests_waiting{engine=\"0\"} -5\r\n"
      "vllm:num_requests_waiting{engine=\"0\"} 1e300\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 7\n"
      "vllm:cache_config_info{engine=\"0\",block_size=\"None\"} 1\n");
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->running, 3u);
  EXPECT_EQ(load->waiting, 1'000'000u);
  EXPECT_EQ(load->kv_usage, 1.0);
  EXPECT_EQ(load->block_size, 0u);
}

TEST(EngineMetrics, RanksThatDisagreeLeaveTheBlockSizeUnknown) {
  const auto load = parse_metrics(
      "vllm:cache_config_info{block_size=\"16\",engine=\"0\"} 1\n"
      "vllm:cache_config_info{block_size=\"32\",engine=\"1\"} 1");
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->block_size, 0u);
  EXPECT_EQ(load->ranks.size(), 2u);
}

TEST(EngineMetrics, EachRankHasItsOwnLoad) {
  const auto load = parse_metrics(
      "vllm:num_requests_running{engine=\"1\"} 3\n"
      "vllm:num_requests_waiting{engine=\"1\"} 4\n"
      "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n"
      "vllm:num_requests_running{engine=\"0\"} 1\n"
      "vllm:num_requests_running{model_name=\"m\"} 1\n"
      "vllm:num_requests_running{engine=\"64\"} 1\n"
      "vllm:num_requests_running{engine=\"x\"} 1\n");
  ASSERT_TRUE(load.ok());
  ASSERT_EQ(load->ranks.size(), 2u);
  EXPECT_EQ(load->ranks[0].number, 0u);
  EXPECT_EQ(load->ranks[0].running, 4u) << "what is no rank is the first one's";
  EXPECT_EQ(load->ranks[1].number, 1u);
  EXPECT_EQ(load->ranks[1].running, 3u);
  EXPECT_EQ(load->ranks[1].waiting, 4u);
  EXPECT_EQ(load->ranks[1].kv_usage, 0.5);
  EXPECT_EQ(load->running, 7u);
}

TEST(EngineMetrics, ANameThatOnlyBeginsAsOneOfTheseIsAnother) {
  const auto load = parse_metrics(
      "vllm:num_requests_running 2\n"
      "vllm:num_requests_running5 7\n"
      "vllm:num_requests_running_now{engine=\"0\"} 7\n"
      "other:num_requests_running{engine=\"0\"} 7\n");
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->running, 2u);
}

TEST(EngineMetrics, ATextWithoutLoadIsRefused) {
  EXPECT_FALSE(parse_metrics("").ok());
  EXPECT_FALSE(parse_metrics("process_cpu_seconds_total 5\n").ok());
}

TEST(Endpoints, EngineEndpointsBecomeOurs) {
  struct Case {
    std::string engine_side;
    std::string host;
    std::string want;  // empty: refused
    bool want_bind = false;
  };
  const std::vector<Case> cases = {
      {"tcp://*:5557", "10.0.0.7", "tcp://10.0.0.7:5557"},
      {"tcp://[::]:5557", "10.0.0.7", "tcp://10.0.0.7:5557"},
      {"tcp://*:5557", "fd00::7", "tcp://[fd00::7]:5557"},
      {"tcp://[fd00::9]:5557", "fd00::7", "tcp://[fd00::9]:5557"},
      {"tcp://router:5557", "10.0.0.7", "tcp://*:5557", true},
      {"tcp://10.0.0.1:5557", "10.0.0.7", "tcp://*:5557", true},
      {"ipc:///run/kv.sock", "10.0.0.7", "ipc:///run/kv.sock"},
      {"tcp://0.0.0.0:5557", "10.0.0.7", ""},
      {"tcp://*:0", "10.0.0.7", ""},
      {"tcp://*:65536", "10.0.0.7", ""},
      {"tcp://*", "10.0.0.7", ""},
      {"tcp://:5557", "10.0.0.7", ""},
      {"inproc://kv", "10.0.0.7", ""},
      {"ipc://", "10.0.0.7", ""},
      {"", "10.0.0.7", ""},
  };
  for (const Case& c : cases) {
    const auto resolved = resolve_events_endpoint(c.engine_side, c.host);
    EXPECT_EQ(resolved.ok(), !c.want.empty()) << c.engine_side;
    if (!resolved.ok() || c.want.empty()) continue;
    EXPECT_EQ(resolved->endpoint, c.want);
    EXPECT_EQ(resolved->bind, c.want_bind) << c.engine_side;
  }
}

TEST(Endpoints, TheReplaySocketIsAlwaysOnTheEnginesSide) {
  EXPECT_EQ(*resolve_replay_endpoint("tcp://*:5657", "h"), "tcp://h:5657");
  EXPECT_EQ(*resolve_replay_endpoint("tcp://0.0.0.0:5657", "h"), "tcp://h:5657");
  EXPECT_EQ(*resolve_replay_endpoint("tcp://10.0.0.1:5657", "h"), "tcp://10.0.0.1:5657");
  EXPECT_EQ(*resolve_replay_endpoint("ipc:///r", "h"), "ipc:///r");
  EXPECT_FALSE(resolve_replay_endpoint("5657", "h").ok());
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
  probe.sources = parse_event_sources(recorded("kv_event_sources-dp2.json"));
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
  probe.load = parse_metrics(recorded("metrics-dp2.txt"));
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
  probe.load = parse_metrics(recorded("metrics-dp2.txt"));
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
  probe.sources = parse_event_sources(recorded("kv_event_sources-dp2.json"));
  probe.load = parse_metrics(recorded("metrics-dp2.txt"));
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
