// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/worker_client.h"

#include <functional>
#include <future>

#include <gtest/gtest.h>

#include "common/runtime/worker_thread.h"

#include "router/engine/vllm/vllm.h"
#include "tests/fakes/engine_facts_server.h"
#include "tests/fakes/raw_socket.h"
#include "tests/support/loopback.h"

namespace sightline::fleet {
namespace {

http::ServerAddress local(std::uint16_t port) { return {"127.0.0.1", port}; }

Probe probe_of(WorkerClient& client, const http::ServerAddress& engine) {
  std::promise<Probe> promise;
  client.start_probe({engine, vllm::vllm()}, WorkerClient::AskVersion::Yes,
                     [&promise](Probe probe) { promise.set_value(std::move(probe)); });
  return promise.get_future().get();
}

TEST(WorkerClient, AProbeReturnsEverythingAnEngineReports) {
  const test::EngineFactsServer engine;
  WorkerClient client({});
  const Probe probe = probe_of(client, local(engine.port()));
  EXPECT_TRUE(probe.health.ok());
  ASSERT_TRUE(probe.models.ok());
  EXPECT_EQ(probe.models->at(0).id, "tiny");
  ASSERT_TRUE(probe.sources.ok());
  EXPECT_EQ(probe.sources->at(0).endpoint, "tcp://*:5557");
  ASSERT_TRUE(probe.load.ok());
  EXPECT_EQ(probe.load->block_size, 16u);
  ASSERT_TRUE(probe.version && probe.version->ok());
  EXPECT_EQ((*probe.version)->text, "0.32.0");
}

TEST(WorkerClient, AsksForTheVersionOnlyOnRequest) {
  test::EngineFactsServer engine;
  WorkerClient client({});
  std::promise<Probe> promise;
  client.start_probe({local(engine.port()), vllm::vllm()}, WorkerClient::AskVersion::No,
                     [&promise](Probe probe) { promise.set_value(std::move(probe)); });
  EXPECT_FALSE(promise.get_future().get().version.has_value());
  for (const auto& [status, body] : {std::pair(404, ""), {500, ""}, {200, "<html>"}, {200, "{}"}}) {
    engine.set("/version", {status, body});
    const Probe probe = probe_of(client, local(engine.port()));
    EXPECT_TRUE(probe.health.ok());
    EXPECT_TRUE(probe.models.ok());
    ASSERT_TRUE(probe.version.has_value());
    EXPECT_FALSE(probe.version->ok());
  }
}

TEST(WorkerClient, MissingPathsAreNotFoundAndOtherPartsAreKnown) {
  test::EngineFactsServer engine;
  engine.set("/kv_event_sources", {404, R"({"detail":"Not Found"})"});
  engine.set("/metrics", {200, "no metrics here\n"});
  WorkerClient client({});
  const Probe probe = probe_of(client, local(engine.port()));
  EXPECT_TRUE(probe.health.ok());
  ASSERT_FALSE(probe.sources.ok());
  EXPECT_EQ(probe.sources.error().code, ErrorCode::NotFound);
  EXPECT_EQ(probe.load.error().code, ErrorCode::Corrupt);
}

TEST(WorkerClient, AnEngineWithAFailingHealthPathIsNotHealthy) {
  test::EngineFactsServer engine;
  engine.set("/health", {503, ""});
  WorkerClient client({});
  const Probe probe = probe_of(client, local(engine.port()));
  ASSERT_FALSE(probe.health.ok());
  EXPECT_EQ(probe.health.error().message, "/health answers 503");
  EXPECT_FALSE(probe.refused);
  EXPECT_TRUE(probe.is_unwell);
}

TEST(WorkerClient, IsHealthyWithoutHealthPathIfItListsModels) {
  test::EngineFactsServer engine;
  engine.set("/health", {404, ""});
  WorkerClient client({});
  EXPECT_TRUE(probe_of(client, local(engine.port())).health.ok());
  engine.set("/v1/models", {404, ""});
  EXPECT_FALSE(probe_of(client, local(engine.port())).health.ok());
}

TEST(WorkerClient, ReportsARefusedConnection) {
  std::uint16_t port = 0;
  {
    const test::ListeningSocket gone;
    port = gone.port();
  }
  WorkerClient client({});
  const Probe probe = probe_of(client, local(port));
  ASSERT_FALSE(probe.health.ok());
  EXPECT_TRUE(probe.refused) << probe.health.error().message;
}

TEST(WorkerClient, CancelsTheProbeOfASilentEngineAtTheDeadline) {
  const test::ListeningSocket silent;
  WorkerClient client({.timeout = std::chrono::milliseconds(50)});
  const Probe probe = probe_of(client, local(silent.port()));
  ASSERT_FALSE(probe.health.ok());
  EXPECT_EQ(probe.health.error().code, ErrorCode::Timeout) << probe.health.error().message;
  EXPECT_FALSE(probe.refused);
}

// A scripted engine: what it does with each connection.
WorkerThread play(fakes::RawListener& listener, std::function<void(fakes::RawListener&)> script) {
  return {"engine",
          [&listener, script = std::move(script)](const std::stop_token&) { script(listener); }};
}

std::string load_answer(int running) {
  const std::string text = test::EngineFactsServer::metrics_text(running);
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

Result<ServerLoad> load_of(WorkerClient& client, const http::ServerAddress& engine) {
  std::promise<Result<ServerLoad>> promise;
  client.start_load({engine, vllm::vllm()},
                    [&promise](Result<ServerLoad> load) { promise.set_value(std::move(load)); });
  return promise.get_future().get();
}

TEST(WorkerClient, KeepsAConnectionAndReplacesAClosedOne) {
  fakes::RawListener listener;
  const WorkerThread engine = play(listener, [](fakes::RawListener& from) {
    fakes::RawSocket first = from.accept();
    for (const int running : {1, 2}) {
      first.receive_until("\r\n\r\n");
      first.send(load_answer(running));
    }
    // Only the third request can show that this connection is closed.
    first.receive_until("\r\n\r\n");
    first.close();
    fakes::RawSocket second = from.accept();
    second.receive_until("\r\n\r\n");
    second.send(load_answer(3));
  });
  WorkerClient client({.timeout = std::chrono::seconds(60)});
  for (const std::uint32_t running : {1u, 2u, 3u}) {
    const auto load = load_of(client, local(listener.port()));
    ASSERT_TRUE(load.ok()) << load.error().message;
    EXPECT_EQ(load->running, running);
  }
}

TEST(WorkerClient, CancelsATricklingAnswerAtTheDeadline) {
  fakes::RawListener listener;
  const WorkerThread engine = play(listener, [](fakes::RawListener& from) {
    fakes::RawSocket socket = from.accept();
    socket.receive_until("\r\n\r\n");
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    while (socket.send("#")) continue;
  });
  WorkerClient client({.timeout = std::chrono::milliseconds(200), .answer_bytes_max = 8 << 20});
  const auto load = load_of(client, local(listener.port()));
  ASSERT_FALSE(load.ok());
  EXPECT_EQ(load.error().code, ErrorCode::Timeout) << load.error().message;
}

TEST(WorkerClient, AnUnknownHostIsNoRefusal) {
  WorkerClient client({.timeout = std::chrono::seconds(60)});
  const Probe probe = probe_of(client, {"no-such-host.invalid", 8000});
  ASSERT_FALSE(probe.health.ok());
  EXPECT_FALSE(probe.refused);
  EXPECT_EQ(probe.health.error().message, "the host is unknown or unreachable");
}

TEST(WorkerClient, RefusesAnAnswerBeyondTheLimit) {
  test::EngineFactsServer engine;
  engine.set("/metrics", {200, std::string(3'000'000, '#') + "\n"});
  WorkerClient client({.answer_bytes_max = 1'000'000});
  const auto load = load_of(client, local(engine.port()));
  ASSERT_FALSE(load.ok());
  EXPECT_EQ(load.error().code, ErrorCode::TooLarge);
}

TEST(WorkerClient, GarbageIsAnErrorNotACrash) {
  test::EngineFactsServer engine;
  engine.set("/v1/models", {200, "<html>"});
  engine.set("/kv_event_sources", {200, std::string(10'000, '[')});
  WorkerClient client({});
  const Probe probe = probe_of(client, local(engine.port()));
  EXPECT_EQ(probe.models.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(probe.sources.error().code, ErrorCode::Corrupt);
}

TEST(WorkerClient, SendsAConfiguredKeyAsABearerToken) {
  fakes::RawListener listener;
  std::string heads;
  const WorkerThread engine = play(listener, [&heads](fakes::RawListener& from) {
    fakes::RawSocket socket = from.accept();
    for (const int running : {1, 2}) {
      heads += socket.receive_until("\r\n\r\n") + "|";
      socket.send(load_answer(running));
    }
  });
  WorkerClient client({.timeout = std::chrono::seconds(60)});
  std::promise<Result<ServerLoad>> promise;
  auto done = [&promise](Result<ServerLoad> load) { promise.set_value(std::move(load)); };
  client.start_load({local(listener.port()), vllm::vllm(), "sk-1"}, done);
  EXPECT_TRUE(promise.get_future().get().ok());
  EXPECT_TRUE(load_of(client, local(listener.port())).ok());
  const std::string with_key = heads.substr(0, heads.find('|'));
  EXPECT_NE(with_key.find("uthorization: Bearer sk-1\r\n"), std::string::npos) << heads;
  EXPECT_EQ(heads.find("sk-1", with_key.size()), std::string::npos) << heads;
}

TEST(WorkerClient, AnEngineThatRefusesTheKeyIsAlive) {
  test::EngineFactsServer engine;
  for (const char* path : {"/health", "/v1/models", "/kv_event_sources", "/metrics"}) {
    engine.set(path, {401, R"({"error":"Unauthorized"})"});
  }
  WorkerClient client({});
  const Probe probe = probe_of(client, local(engine.port()));
  EXPECT_TRUE(probe.health.ok());
  EXPECT_EQ(probe.models.error().code, ErrorCode::Unauthorized);
  EXPECT_EQ(probe.models.error().message, "/v1/models answers 401");
  EXPECT_EQ(probe.sources.error().code, ErrorCode::Unauthorized);
  EXPECT_EQ(probe.load.error().code, ErrorCode::Unauthorized);
}

TEST(WorkerClient, IsHealthyWithoutHealthPathIfModelsNeedAKey) {
  test::EngineFactsServer engine;
  engine.set("/health", {404, ""});
  engine.set("/v1/models", {401, ""});
  WorkerClient client({});
  EXPECT_TRUE(probe_of(client, local(engine.port())).health.ok());
}

TEST(WorkerClient, StopCancelsRunningCallsAndCallsBackOnce) {
  const test::ListeningSocket silent;
  int calls = 0;
  {
    WorkerClient client({.timeout = std::chrono::minutes(5)});
    client.start_probe({local(silent.port()), vllm::vllm()}, WorkerClient::AskVersion::No,
                       [&calls](const Probe&) { ++calls; });
    client.stop();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sightline::fleet
