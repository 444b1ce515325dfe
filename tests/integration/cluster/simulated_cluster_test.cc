// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/simulated_cluster.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/json.h"

#include "tests/fakes/run_task.h"
#include "tests/integration/cluster/http_ask.h"
#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

SimulateSettings settings_of_one() {
  SimulateSettings settings;
  settings.engines = 1;
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

std::string message(const std::string& role, const std::string& text) {
  return R"({"role":")" + role + R"(","content":)" + json::to_quoted(text) + "}";
}

std::string chat(const std::string& messages, const std::string& members) {
  return R"({"model":"sim","messages":[)" + messages + "]," + members + "}";
}

std::string words(std::size_t count) {
  std::string text = "one";
  for (std::size_t i = 1; i < count; ++i) text += i % 2 == 0 ? " one" : " two";
  return text;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::int64_t usage(const std::string& body, const std::string& member) {
  const auto at = body.rfind("\"" + member + "\":");
  return at == std::string::npos ? -1 : std::stoll(body.substr(at + member.size() + 3));
}

std::string content(const std::string& body) {
  const auto document = json::Document::parse(body);
  const auto choice = *document->root().find("choices")->begin();
  return std::string(*choice.find("message")->find("content")->string());
}

TEST(SimulatedCluster, TheNextTurnReusesBlocksFilledByDecoding) {
  const auto cluster = start(settings_of_one());
  const std::string& url = cluster->endpoints(0).url;
  const std::string question = message("user", "What is it?");
  const Answer first = ask(url, {.body = chat(question, R"("max_tokens":100)")});
  ASSERT_EQ(first.status, 200) << first.body;
  const std::string turns = question + "," + message("assistant", content(first.body)) + "," +
                            message("user", "And then?");
  const Answer second = ask(url, {.body = chat(turns, R"("max_tokens":1)")});
  const std::int64_t before = usage(first.body, "prompt_tokens") + 100;
  // All whole blocks of the first turn without its last token, which was never computed.
  EXPECT_EQ(usage(second.body, "cached_tokens"), (before - 1) / 16 * 16) << second.body;
}

TEST(SimulatedCluster, StreamsAnEventWhileTheNextTokensAreMade) {
  SimulateSettings settings = settings_of_one();
  settings.decode_tokens_per_s = 1;
  const auto cluster = start(settings);
  auto socket = fakes::RawSocket::connect(port_of(cluster->endpoints(0).url));
  socket.send(
      wire_text_of({.body = chat(message("user", "hi"), R"("max_tokens":500,"stream":true)")}));
  socket.receive_until("\"content\":\"\"");
  socket.receive_until("\n\n");
  socket.receive_until("\n\n");
  // The first token is here, the last one is not made yet.
  EXPECT_EQ(cluster->counters(0).finished, 0U);
}

TEST(SimulatedCluster, StreamsOneEventAToken) {
  const auto cluster = start(settings_of_one());
  auto socket = fakes::RawSocket::connect(port_of(cluster->endpoints(0).url));
  socket.send(
      wire_text_of({.body = chat(message("user", "hi"), R"("max_tokens":50,"stream":true)")}));
  socket.receive_until("\"content\":\"\"");
  const std::string rest = socket.receive_until("data: [DONE]\n\n");
  EXPECT_EQ(occurrences(rest, "\"content\":"), 50U);
  EXPECT_EQ(cluster->counters(0).generated_tokens, 50U);
}

TEST(SimulatedCluster, ADepartureDuringALongPrefillStopsTheWork) {
  SimulateSettings settings = settings_of_one();
  settings.prefill_tokens_per_s = 1000;
  const auto cluster = start(settings);
  {
    auto socket = fakes::RawSocket::connect(port_of(cluster->endpoints(0).url));
    socket.send(wire_text_of({.body = chat(message("user", words(30'000)), R"("max_tokens":5)")}));
    ASSERT_TRUE(fakes::eventually([&] { return cluster->counters(0).prefill_tokens > 0; }));
  }
  ASSERT_TRUE(fakes::eventually([&] { return cluster->counters(0).running == 0; }));
  EXPECT_EQ(cluster->counters(0).aborted, 1U);
  EXPECT_LT(cluster->counters(0).prefill_tokens, 10'000U);
  EXPECT_EQ(cluster->counters(0).finished, 0U);
}

TEST(SimulatedCluster, PromptsTakeTheConfiguredTimeAndCachedTokensNoTime) {
  SimulateSettings settings = settings_of_one();
  settings.prefill_tokens_per_s = 2000;
  const auto cluster = start(settings);
  const std::string& url = cluster->endpoints(0).url;
  const Question question{.body = chat(message("user", words(1000)), R"("max_tokens":1)")};
  const Instant begin = system_clock().now();
  const Answer first = ask(url, question);
  const Duration took = system_clock().now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(usage(first.body, "prompt_tokens") / 2 - 10));
  const std::uint64_t computed = cluster->counters(0).prefill_tokens;
  EXPECT_GE(computed, 1000U);
  ask(url, question);
  EXPECT_LE(cluster->counters(0).prefill_tokens - computed, 16U);
}

std::vector<fakes::RawSocket> ask_three_at_once(const std::string& url) {
  std::vector<fakes::RawSocket> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(fakes::RawSocket::connect(port_of(url)));
    sockets.back().send(wire_text_of({.body = chat(message("user", "hi"), R"("max_tokens":20)")}));
  }
  return sockets;
}

TEST(SimulatedCluster, RequestsBeyondTheRunningLimitWaitAndAreCounted) {
  SimulateSettings settings = settings_of_one();
  settings.max_running = 1;
  settings.decode_tokens_per_s = 1;
  const auto cluster = start(settings);
  const std::string& url = cluster->endpoints(0).url;
  const auto sockets = ask_three_at_once(url);
  ASSERT_TRUE(fakes::eventually([&] { return cluster->counters(0).waiting == 2; }));
  const std::string page = get(url, "/metrics").body;
  EXPECT_NE(page.find("vllm:num_requests_running{engine=\"0\",model_name=\"sim\"} 1.0\n"),
            std::string::npos);
  EXPECT_NE(page.find("vllm:num_requests_waiting{engine=\"0\",model_name=\"sim\"} 2.0\n"),
            std::string::npos);
}

TEST(SimulatedCluster, RequestsBeyondTheRunningLimitAreAnsweredInTheEnd) {
  SimulateSettings settings = settings_of_one();
  settings.max_running = 1;
  const auto cluster = start(settings);
  for (auto& socket : ask_three_at_once(cluster->endpoints(0).url)) {
    EXPECT_NE(socket.receive_all().find("\"completion_tokens\":20"), std::string::npos);
  }
}

TEST(SimulatedCluster, SeveralSamplesCountThePromptOnce) {
  const auto cluster = start(settings_of_one());
  const Answer answer = ask(cluster->endpoints(0).url,
                            {.body = chat(message("user", words(100)), R"("max_tokens":3,"n":2)")});
  EXPECT_EQ(usage(answer.body, "completion_tokens"), 6);
  EXPECT_EQ(usage(answer.body, "cached_tokens"), 0);
  EXPECT_EQ(occurrences(answer.body, "\"finish_reason\":\"length\""), 2U);
}

TEST(SimulatedCluster, CompletionsTakeTextIdsAndBatches) {
  const auto cluster = start(settings_of_one());
  const std::string& url = cluster->endpoints(0).url;
  const auto complete = [&](const std::string& prompt) {
    return ask(
        url, {.path = "/v1/completions", .body = R"({"prompt":)" + prompt + R"(,"max_tokens":2})"});
  };
  EXPECT_EQ(usage(complete(R"("one two three")").body, "prompt_tokens"), 3);
  EXPECT_EQ(usage(complete("[10,11,12,13]").body, "prompt_tokens"), 4);
  const Answer batch = complete(R"(["one","two two"])");
  EXPECT_EQ(usage(batch.body, "prompt_tokens"), 3);
  EXPECT_EQ(usage(batch.body, "completion_tokens"), 4);
  EXPECT_EQ(complete("[[1],[]]").status, 400);
  EXPECT_EQ(complete("[99999999]").status, 400);
}

TEST(SimulatedCluster, ReportsItsEventEndpointsAndBlocks) {
  SimulateSettings settings = settings_of_one();
  settings.lora_modules = {"ad"};
  const auto cluster = start(settings);
  const EngineAddresses& at = cluster->endpoints(0);
  const std::string sources = get(at.url, "/kv_event_sources").body;
  EXPECT_NE(sources.find("\"endpoint\":\"tcp://*:" + std::to_string(port_of(at.events))),
            std::string::npos);
  EXPECT_NE(sources.find("\"replay_endpoint\":\"tcp://*:" + std::to_string(port_of(at.replay))),
            std::string::npos);
  const std::string models = get(at.url, "/v1/models").body;
  EXPECT_NE(models.find(R"("id":"sim")"), std::string::npos);
  EXPECT_NE(models.find(R"("max_model_len":32768)"), std::string::npos);
  EXPECT_NE(models.find(R"("parent":"sim","max_model_len":null)"), std::string::npos);
  ask(at.url, {.body = chat(message("user", words(100)), R"("max_tokens":1)")});
  const std::string blocks = get(at.url, "/sim/blocks").body;
  EXPECT_EQ(occurrences(blocks, "\"hash\":"), cluster->counters(0).blocks_cached);
  EXPECT_GT(cluster->counters(0).blocks_cached, 5U);
  EXPECT_EQ(ask(at.url, {.path = "/reset_prefix_cache"}).body, R"({"success":true})");
  EXPECT_EQ(cluster->counters(0).blocks_cached, 0U);
}

TEST(SimulatedCluster, InstantModeAnswersAnyPromptInTheSameShape) {
  SimulateSettings settings = settings_of_one();
  settings.instant = true;
  settings.model_path.clear();
  const auto cluster = start(settings);
  const std::string& url = cluster->endpoints(0).url;
  const Answer whole = ask(url, {.body = chat(message("user", "x"), R"("max_tokens":3)")});
  EXPECT_EQ(content(whole.body), " word word word");
  const Answer stream =
      ask(url, {.body = chat(message("user", "x"), R"("max_tokens":3,"stream":true)")});
  EXPECT_EQ(occurrences(stream.body, "\"content\":\" word\""), 3U);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(get(url, "/kv_event_sources").body, "{}");
}

TEST(SimulatedCluster, EndsWhileRequestsRun) {
  SimulateSettings settings = settings_of_one();
  settings.engines = 3;
  settings.threads = 2;
  settings.decode_tokens_per_s = 1;
  auto cluster = start(settings);
  std::vector<fakes::RawSocket> sockets;
  for (std::size_t i = 0; i < 3; ++i) {
    sockets.push_back(fakes::RawSocket::connect(port_of(cluster->endpoints(i).url)));
    sockets.back().send(
        wire_text_of({.body = chat(message("user", "hi"), R"("max_tokens":100,"stream":true)")}));
    ASSERT_TRUE(fakes::eventually([&] { return cluster->counters(i).running == 1; }));
  }
  cluster.reset();
  for (auto& socket : sockets) {
    EXPECT_EQ(socket.receive_all().find("[DONE]"), std::string::npos);
  }
}

}  // namespace
}  // namespace sightline::cluster
