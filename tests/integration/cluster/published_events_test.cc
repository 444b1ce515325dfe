// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The events that a simulated engine announced over ZMQ, counted copy by copy, equal the blocks
// that it holds.
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <zmq.h>

#include "common/base/json.h"
#include "common/base/rng.h"

#include "simulator/cluster/simulated_cluster.h"
#include "tests/integration/cluster/http_ask.h"
#include "tests/integration/core/recorded_events.h"
#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

constexpr int kTimeoutMs = 5000;
const std::string kEnd(8, '\xff');

// The payloads of a replay from the beginning.
std::vector<Bytes> replay_all(const std::string& endpoint) {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_DEALER);
  const int linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(socket, ZMQ_RCVTIMEO, &kTimeoutMs, sizeof kTimeoutMs);
  zmq_connect(socket, endpoint.c_str());
  zmq_send(socket, "", 0, ZMQ_SNDMORE);
  zmq_send(socket, "\0\0\0\0\0\0\0\0", 8, 0);
  std::vector<Bytes> payloads;
  std::vector<Bytes> frames;
  const auto at_end = [&] { return frames.size() == 4 && text_of(frames[2]) == kEnd; };
  while (!at_end()) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket, 0) < 0) break;
    const auto* bytes = static_cast<const std::uint8_t*>(zmq_msg_data(&message));
    frames.emplace_back(bytes, bytes + zmq_msg_size(&message));
    const bool more = zmq_msg_more(&message) != 0;
    zmq_msg_close(&message);
    if (more || at_end()) continue;
    payloads.push_back(frames.back());
    frames.clear();
  }
  EXPECT_TRUE(at_end());
  zmq_close(socket);
  zmq_ctx_term(context);
  return payloads;
}

using Copies = std::map<std::string, std::int64_t>;  // by integer hash

std::string name_of(const core::BlockHash& hash) {
  return std::to_string(core::event_integer(hash));
}

void apply(const core::KvEvent& event, Copies& copies) {
  if (const auto* stored = std::get_if<core::BlockStored>(&event)) {
    for (const auto& hash : stored->hashes) ++copies[name_of(hash)];
  } else if (const auto* removed = std::get_if<core::BlockRemoved>(&event)) {
    const auto found = copies.find(name_of(removed->hash));
    ASSERT_TRUE(found != copies.end());
    if (--found->second == 0) copies.erase(found);
  } else {
    copies.clear();
  }
}

Copies announced(const std::string& endpoint) {
  Copies copies;
  for (const Bytes& payload : replay_all(endpoint)) {
    for (const auto& event : core::read_recorded(payload).events) apply(event, copies);
  }
  return copies;
}

Copies held(const std::string& url) {
  const auto document = json::Document::parse(get(url, "/sim/blocks").body);
  Copies copies;
  const auto blocks = document->root().find("blocks");
  for (const json::Value block : *blocks) {
    const std::string hash(*block.find("event_hash")->string());
    copies[hash] = *block.find("copies")->integer();
  }
  return copies;
}

TEST(PublishedEvents, AddUpToTheBlocksThatTheEngineHolds) {
  SimulateSettings settings;
  settings.engines = 1;
  settings.base_port = settings.events_base_port = settings.replay_base_port = 0;
  settings.model_path = test::in_build(SL_MODELS "/qwen2-vl");
  settings.served_model_name = "sim";
  settings.blocks = 60;
  auto cluster = SimulatedCluster::start(settings);
  ASSERT_TRUE(cluster.ok());
  const EngineAddresses& at = (*cluster)->endpoints(0);
  Rng rng(5);
  for (int round = 0; round < 120; ++round) {
    std::string ids = "11";
    const std::uint32_t length = 16 * (1 + rng.below(12)) + rng.below(2) * rng.below(16);
    for (std::uint32_t i = 1; i < length; ++i)
      ids += i % 48 == 0 && rng.below(2) == 0 ? ",12" : ",13";
    const Answer answer = ask(at.url, {.path = "/v1/completions",
                                       .body = R"({"prompt":[)" + ids + R"(],"max_tokens":20})"});
    ASSERT_EQ(answer.status, 200) << answer.body;
    if (round == 60) ask(at.url, {.path = "/reset_prefix_cache"});
    if (round % 20 == 19) {
      ASSERT_EQ(announced(at.replay), held(at.url)) << round;
    }
  }
  EXPECT_GT(held(at.url).size(), 20U);
}

}  // namespace
}  // namespace sightline::cluster
