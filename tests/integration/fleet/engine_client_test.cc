// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/engine_client.h"

#include <future>

#include <gtest/gtest.h>

#include "tests/fakes/engine_facts_server.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/loopback.h"

namespace sightline::fleet {
namespace {

Probe probe_of(EngineClient& client, const std::string& url) {
  std::promise<Probe> promise;
  client.start_probe(url, [&promise](Probe probe) { promise.set_value(std::move(probe)); });
  return promise.get_future().get();
}

TEST(EngineClient, AProbeBringsEverythingAnEngineTells) {
  const test::EngineFactsServer engine;
  EngineClient client({}, system_clock());
  const Probe probe = probe_of(client, engine.url());
  EXPECT_TRUE(probe.health.ok());
  ASSERT_TRUE(probe.models.ok());
  EXPECT_EQ(probe.models->at(0).id, "tiny");
  ASSERT_TRUE(probe.sources.ok());
  EXPECT_EQ(probe.sources->at(0).endpoint, "tcp://*:5557");
  ASSERT_TRUE(probe.load.ok());
  EXPECT_EQ(probe.load->block_size, 16u);
}

TEST(EngineClient, MissingPathsAreNotFoundAndTheRestIsStillKnown) {
  test::EngineFactsServer engine;
  engine.set("/kv_event_sources", {404, R"({"detail":"Not Found"})"});
  engine.set("/metrics", {200, "no metrics here\n"});
  EngineClient client({}, system_clock());
  const Probe probe = probe_of(client, engine.url());
  EXPECT_TRUE(probe.health.ok());
  ASSERT_FALSE(probe.sources.ok());
  EXPECT_EQ(probe.sources.error().code, ErrorCode::NotFound);
  EXPECT_EQ(probe.load.error().code, ErrorCode::Corrupt);
}

TEST(EngineClient, ASickEngineIsNotHealthyWhateverElseItTells) {
  test::EngineFactsServer engine;
  engine.set("/health", {503, ""});
  EngineClient client({}, system_clock());
  const Probe probe = probe_of(client, engine.url());
  ASSERT_FALSE(probe.health.ok());
  EXPECT_EQ(probe.health.error().message, "/health answers 503");
  EXPECT_FALSE(probe.refused);
}

TEST(EngineClient, AServerWithoutHealthPathIsHealthyWhenItTellsItsModels) {
  test::EngineFactsServer engine;
  engine.set("/health", {404, ""});
  EngineClient client({}, system_clock());
  EXPECT_TRUE(probe_of(client, engine.url()).health.ok());
  engine.set("/v1/models", {404, ""});
  EXPECT_FALSE(probe_of(client, engine.url()).health.ok());
}

TEST(EngineClient, ARefusedConnectionIsTold) {
  std::uint16_t port = 0;
  {
    const test::ListeningSocket gone;
    port = gone.port();
  }
  EngineClient client({}, system_clock());
  const Probe probe = probe_of(client, "http://127.0.0.1:" + std::to_string(port));
  ASSERT_FALSE(probe.health.ok());
  EXPECT_TRUE(probe.refused) << probe.health.error().message;
}

TEST(EngineClient, ASilentEngineIsGivenUpAtTheDeadline) {
  const test::ListeningSocket silent;
  test::ManualClock clock;
  EngineClient client({.timeout = std::chrono::seconds(30)}, clock);
  std::promise<Probe> promise;
  client.start_probe("http://127.0.0.1:" + std::to_string(silent.port()),
                     [&promise](Probe probe) { promise.set_value(std::move(probe)); });
  EXPECT_EQ(client.cancel_overdue(), clock.now() + std::chrono::seconds(30));
  clock.advance(std::chrono::seconds(30));
  EXPECT_EQ(client.cancel_overdue(), Instant::max());
  const Probe probe = promise.get_future().get();
  ASSERT_FALSE(probe.health.ok());
  EXPECT_EQ(probe.health.error().code, ErrorCode::Timeout) << probe.health.error().message;
  EXPECT_FALSE(probe.refused);
}

TEST(EngineClient, AnAnswerBeyondTheLimitIsGivenUp) {
  test::EngineFactsServer engine;
  engine.set("/metrics", {200, std::string(3'000'000, '#') + "\n"});
  EngineClient client({.answer_bytes_max = 1'000'000}, system_clock());
  std::promise<Result<EngineLoad>> promise;
  client.start_load(engine.url(),
                    [&promise](Result<EngineLoad> load) { promise.set_value(std::move(load)); });
  const auto load = promise.get_future().get();
  ASSERT_FALSE(load.ok());
  EXPECT_EQ(load.error().code, ErrorCode::TooLarge);
}

TEST(EngineClient, GarbageIsAnErrorNotACrash) {
  test::EngineFactsServer engine;
  engine.set("/v1/models", {200, "<html>"});
  engine.set("/kv_event_sources", {200, std::string(10'000, '[')});
  EngineClient client({}, system_clock());
  const Probe probe = probe_of(client, engine.url());
  EXPECT_EQ(probe.models.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(probe.sources.error().code, ErrorCode::Corrupt);
}

TEST(EngineClient, StopEndsWhatRunsAndCallsBackOnce) {
  const test::ListeningSocket silent;
  int calls = 0;
  {
    EngineClient client({.timeout = std::chrono::minutes(5)}, system_clock());
    client.start_probe("http://127.0.0.1:" + std::to_string(silent.port()),
                       [&calls](const Probe&) { ++calls; });
    client.stop();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sightline::fleet
