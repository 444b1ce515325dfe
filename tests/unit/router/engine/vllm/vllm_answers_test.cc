// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/vllm/vllm_answers.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/support/paths.h"

using sightline::contract::kRanksMax;

namespace sightline::vllm {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(test::in_sources("tests/data/fleet/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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

TEST(EngineMetrics, IgnoresInvalidNumbersOfCacheBlocks) {
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

TEST(EngineMetrics, LongerNameIsAnotherMetric) {
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

}  // namespace
}  // namespace sightline::vllm
