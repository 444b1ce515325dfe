// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// An engine with several data-parallel ranks behind one URL, as recorded of vLLM 0.32 with two
// ranks.
#include <gtest/gtest.h>

#include "common/base/json.h"

#include "simulator/cluster/simulated_cluster.h"
#include "tests/integration/cluster/http_ask.h"
#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

SimulateSettings settings_of(std::uint32_t ranks) {
  SimulateSettings settings;
  settings.engines = 1;
  settings.data_parallel_size = ranks;
  settings.base_port = settings.events_base_port = settings.replay_base_port = 0;
  settings.model_path = test::in_build(SL_MODELS "/qwen2-vl");
  settings.served_model_name = "sim";
  return settings;
}

std::unique_ptr<SimulatedCluster> start(const SimulateSettings& settings) {
  auto cluster = SimulatedCluster::start(settings);
  EXPECT_TRUE(cluster.ok()) << (cluster.ok() ? "" : cluster.error().message);
  return std::move(cluster).value();
}

// A completion of 40 tokens that begin with this one.
std::string prompt(int first) {
  std::string tokens = std::to_string(first);
  for (int i = 1; i < 40; ++i) tokens += "," + std::to_string(2000 + i);
  return R"({"model":"sim","max_tokens":1,"prompt":[)" + tokens + "]}";
}

Answer complete(const std::string& url, int first, const std::string& rank = "") {
  Question question{.path = "/v1/completions", .body = prompt(first)};
  if (!rank.empty()) question.more_headers = "X-data-parallel-rank: " + rank + "\r\n";
  return ask(url, question);
}

std::int64_t cached(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto document = json::Document::parse(answer.body);
  const auto usage = document->root().find("usage");
  return *usage->find("prompt_tokens_details")->find("cached_tokens")->integer();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Ranks, TheHeaderChoosesTheRanksCache) {
  const auto cluster = start(settings_of(2));
  const std::string& url = cluster->endpoints(0).url;
  EXPECT_EQ(cached(complete(url, 1000, "0")), 0);
  EXPECT_EQ(cached(complete(url, 1000, "1")), 0) << "the other rank has not seen it";
  EXPECT_EQ(cached(complete(url, 1000, "1")), 32);
  EXPECT_EQ(cached(complete(url, 1000, "0")), 32);
  EXPECT_EQ(cluster->counters(0).requests, 4U);
  EXPECT_EQ(cluster->counters(0).cached_tokens, 64U);
  EXPECT_EQ(cluster->counters(0).blocks_cached, 4U);
}

TEST(Ranks, AnUnknownRankIsRefusedAsRecorded) {
  const auto cluster = start(settings_of(2));
  const std::string& url = cluster->endpoints(0).url;
  const Answer answer = complete(url, 1000, "2");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, R"({"error":{"message":"data_parallel_rank 2 is out of range [0, 2).",)"
                         R"("type":"BadRequestError","param":null,"code":400}})");
  EXPECT_EQ(complete(url, 1000, "-1").status, 400);
  EXPECT_EQ(complete(url, 1000, "99999999999999999999").status, 400);
  EXPECT_EQ(complete(url, 1000, "first").status, 200) << "what is no number is not seen";
  EXPECT_EQ(get(url, "/sim/blocks?rank=2").status, 400);
}

TEST(Ranks, WithoutTheHeaderTheLeastBusyRankIsChosen) {
  SimulateSettings settings = settings_of(2);
  settings.decode_tokens_per_s = 20;
  const auto cluster = start(settings);
  const std::string& url = cluster->endpoints(0).url;
  auto busy = fakes::RawSocket::connect(port_of(url));
  Question question{.path = "/v1/completions",
                    .body = R"({"model":"sim","max_tokens":1000,"prompt":[5,6,7]})",
                    .more_headers = "X-data-parallel-rank: 1\r\n"};
  busy.send(wire_text_of(question));
  ASSERT_TRUE(fakes::eventually([&] { return cluster->counters(0).running == 1; }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(complete(url, 1000 + i).status, 200);
  const std::string page = get(url, "/metrics").body;
  EXPECT_TRUE(has(page, R"(sl_sim_requests_total{engine="0",model_name="sim"} 3.0)")) << page;
  EXPECT_TRUE(has(page, R"(sl_sim_requests_total{engine="1",model_name="sim"} 1.0)"));
  EXPECT_TRUE(has(page, R"(vllm:num_requests_running{engine="0",model_name="sim"} 0.0)"));
  EXPECT_TRUE(has(page, R"(vllm:num_requests_running{engine="1",model_name="sim"} 1.0)"));
}

TEST(Ranks, IdleRanksTakeTurns) {
  const auto cluster = start(settings_of(3));
  const std::string& url = cluster->endpoints(0).url;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(complete(url, 1000).status, 200);
  const std::string page = get(url, "/metrics").body;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_TRUE(has(
        page, "sl_sim_requests_total{engine=\"" + std::string(rank) + "\",model_name=\"sim\"} 2.0"))
        << page;
  }
}

TEST(Ranks, EventSourcesAndConfigurationAreReportedByRank) {
  const auto cluster = start(settings_of(2));
  const std::string& url = cluster->endpoints(0).url;
  const auto sources = json::Document::parse(get(url, "/kv_event_sources").body);
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(sources->root().size(), 2U);
  EXPECT_NE(*sources->root().find("0")->find("endpoint")->string(),
            *sources->root().find("1")->find("endpoint")->string());
  EXPECT_NE(*sources->root().find("0")->find("replay_endpoint")->string(),
            *sources->root().find("1")->find("replay_endpoint")->string());
  const std::string page = get(url, "/metrics").body;
  EXPECT_TRUE(has(page, R"(enable_prefix_caching="True",engine="0")"));
  EXPECT_TRUE(has(page, R"(enable_prefix_caching="True",engine="1")"));
  EXPECT_EQ(cluster->endpoints(0).worker_flag("w"), "name=w,url=" + url)
      << "ports that the system chose do not follow each other";
}

}  // namespace
}  // namespace sightline::cluster
