// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Sends the recorded requests of a vLLM 0.32 server to a simulated one of the same configuration.
// All that does not depend on the model's weights must be equal.
#include <set>

#include <gtest/gtest.h>

#include "common/base/json.h"

#include "simulator/cluster/simulated_cluster.h"
#include "tests/integration/cluster/http_ask.h"
#include "tests/support/captures.h"
#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

using test::CapturedExchange;

std::unique_ptr<SimulatedCluster> start_tiny() {
  SimulateSettings settings;
  settings.engines = 1;
  settings.base_port = settings.events_base_port = settings.replay_base_port = 0;
  settings.model_path = test::in_build("models/tiny-qwen2-vl");
  settings.served_model_name = "tiny";
  settings.block_size = 32;
  auto cluster = SimulatedCluster::start(settings);
  EXPECT_TRUE(cluster.ok()) << (cluster.ok() ? "" : cluster.error().message);
  return std::move(cluster).value();
}

std::string member(const std::string& text, const std::string& name) {
  const std::size_t at = text.rfind("\"" + name + "\":");
  if (at == std::string::npos) return "";
  return text.substr(at, text.find_first_of(",}", at) - at);
}

// The parts of an answer that do not depend on the weights.
std::string usage_of(const std::string& body) {
  std::string out;
  for (const char* name : {"prompt_tokens", "completion_tokens", "cached_tokens",
                           "created_cache_tokens", "multimodal_tokens"}) {
    out += member(body, name) + " ";
  }
  return out;
}

// These exchanges depend on more: a turn with an answer of the recorded weights, pictures by http:
// URL and one that shares their blocks, an answer cut by a sampled end of sequence, and exchanges
// after the engine slept.
bool depends_on_more(std::int64_t n) {
  static const std::set<std::int64_t> exchanges{106, 140, 143, 146, 149, 209, 255};
  return exchanges.contains(n);
}

class RecordedDialogue : public testing::Test {
 protected:
  Answer repeat(const CapturedExchange& exchange) {
    return ask(cluster_->endpoints(0).url,
               {.method = exchange.method, .path = exchange.path, .body = exchange.request_body});
  }

  const std::unique_ptr<SimulatedCluster> cluster_ = start_tiny();
  const test::CapturedSession session_ = test::load_capture("qwen2vl-main");
};

TEST_F(RecordedDialogue, ChatUsageIsEqualOnEveryExchange) {
  std::size_t compared = 0;
  for (const CapturedExchange& exchange : session_.exchanges) {
    const bool resets = exchange.path == "/reset_prefix_cache" ||
                        exchange.path == "/reset_mm_cache" ||
                        exchange.path == "/reset_encoder_cache";
    if (resets) {
      EXPECT_EQ(repeat(exchange).body, exchange.response_body);
    }
    const bool generates =
        exchange.path == "/v1/chat/completions" || exchange.path == "/v1/completions";
    if (!generates || !exchange.n || exchange.status != 200) continue;
    const Answer answer = repeat(exchange);
    if (depends_on_more(*exchange.n)) continue;
    ASSERT_EQ(answer.status, 200) << *exchange.n << answer.body;
    EXPECT_EQ(usage_of(answer.body), usage_of(exchange.response_body)) << *exchange.n;
    ++compared;
  }
  EXPECT_EQ(compared, 83U);
}

TEST_F(RecordedDialogue, TokenizeGivesTheSameIds) {
  std::size_t compared = 0;
  for (const CapturedExchange& exchange : session_.exchanges) {
    if (exchange.path != "/tokenize" || exchange.status != 200) continue;
    if (exchange.request_body.find("\"http://") != std::string::npos) continue;
    EXPECT_EQ(repeat(exchange).body, exchange.response_body) << *exchange.n;
    ++compared;
  }
  EXPECT_EQ(compared, 45U);
}

TEST_F(RecordedDialogue, RefusalsAreEqualToTheLetter) {
  // The text/plain request, whose header the reader of recordings does not return. Also requests
  // that need a network, or that name a part type which Pydantic describes at length.
  static const std::set<std::int64_t> elsewhere{150, 151, 152, 205, 219, 225};
  std::size_t compared = 0;
  for (const CapturedExchange& exchange : session_.exchanges) {
    if (!exchange.n || exchange.status < 400 || elsewhere.contains(*exchange.n)) continue;
    if (exchange.path.starts_with("/inference") || exchange.path.ends_with("render") ||
        exchange.label == "3" || exchange.label == "uuid only") {
      continue;
    }
    const Answer answer = repeat(exchange);
    EXPECT_EQ(answer.status, exchange.status) << *exchange.n;
    EXPECT_EQ(answer.body, exchange.response_body) << *exchange.n;
    ++compared;
  }
  EXPECT_EQ(compared, 32U);
}

}  // namespace
}  // namespace sightline::cluster
