// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Faults as a client of a simulated engine sees them.
#include <string>

#include <gtest/gtest.h>

#include "common/base/json.h"

#include "simulator/cluster/simulated_cluster.h"
#include "tests/integration/cluster/http_ask.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

constexpr char kBody[] =
    R"({"prompt":[11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28],"max_tokens":4)";

SimulateSettings settings_of_one() {
  SimulateSettings settings;
  settings.engines = 1;
  settings.base_port = settings.events_base_port = settings.replay_base_port = 0;
  settings.model_path = test::in_build(SL_MODELS "/qwen2-vl");
  settings.served_model_name = "sim";
  return settings;
}

std::unique_ptr<SimulatedCluster> start(const std::vector<std::string>& faults = {},
                                        double decode_tokens_per_s = 0) {
  SimulateSettings settings = settings_of_one();
  settings.faults = faults;
  settings.decode_tokens_per_s = decode_tokens_per_s;
  auto cluster = SimulatedCluster::start(settings);
  EXPECT_TRUE(cluster.ok()) << cluster.error().message;
  return std::move(cluster).value();
}

Answer complete(const std::string& url, const std::string& more = "}") {
  return ask(
      url,
      {.path = "/v1/completions", .body = kBody + more, .more_headers = "x-request-id: r1\r\n"});
}

Answer order(const std::string& url, const std::string& fault) {
  return ask(url, {.path = "/fault", .body = fault});
}

TEST(Faults, AnInjected500NamesTheRequestItStruck) {
  const auto cluster = start({"kind=status500,count=1"});
  const std::string& url = cluster->endpoints(0).url;
  const Answer refused = complete(url);
  EXPECT_EQ(refused.status, 500);
  EXPECT_NE(refused.body.find("injected fault"), std::string::npos);
  EXPECT_EQ(complete(url).status, 200);
  const std::string listed = get(url, "/fault").body;
  EXPECT_NE(listed.find(R"("kind":"status500")"), std::string::npos);
  EXPECT_NE(listed.find(R"("request":"r1")"), std::string::npos);
  EXPECT_NE(get(url, "/metrics").body.find(R"(sl_sim_faults_total{engine="0",kind="status500",)"),
            std::string::npos);
}

TEST(Faults, AStreamDiesAfterTheOrderedNumberOfEvents) {
  const auto cluster = start({"kind=die-midstream,after=2,count=1"});
  const std::string& url = cluster->endpoints(0).url;
  const Answer broken = complete(url, R"(,"stream":true})");
  EXPECT_EQ(broken.status, 200);
  std::size_t events = 0;
  for (auto at = broken.body.find("data: "); at != std::string::npos;
       at = broken.body.find("data: ", at + 1)) {
    ++events;
  }
  EXPECT_EQ(events, 2U);
  EXPECT_TRUE(complete(url, R"(,"stream":true})").body.ends_with("data: [DONE]\n\n"));
}

TEST(Faults, ASlowProbeDelaysNoRequest) {
  const auto cluster = start({"kind=slow-probe,ms=60,count=1"});
  const std::string& url = cluster->endpoints(0).url;
  EXPECT_EQ(complete(url).status, 200);
  EXPECT_EQ(get(url, "/fault?since=0").body.find(R"("strikes":[{)"), std::string::npos);
  const Instant begin = system_clock().now();
  EXPECT_EQ(get(url, "/health").status, 200);
  EXPECT_GE(system_clock().now() - begin, std::chrono::milliseconds(60));
  EXPECT_NE(get(url, "/fault?since=0").body.find(R"({"kind":"slow-probe")"), std::string::npos);
}

TEST(Faults, AStalledAnswerArrivesCompleteLater) {
  const auto cluster = start({"kind=stall,ms=60,count=1"});
  const std::string& url = cluster->endpoints(0).url;
  const Instant begin = system_clock().now();
  EXPECT_TRUE(complete(url, R"(,"stream":true})").body.ends_with("data: [DONE]\n\n"));
  EXPECT_GE(system_clock().now() - begin, std::chrono::milliseconds(60));
}

TEST(Faults, DataWrittenDuringAStallIsKept) {
  const auto cluster = start({"kind=stall,after=1,ms=100,count=1"}, 1000);
  const std::string stalled = complete(cluster->endpoints(0).url,
                                       R"(,"stream":true,"stream_options":{"include_usage":true}})")
                                  .body;
  EXPECT_NE(stalled.find(R"("completion_tokens":4)"), std::string::npos) << stalled;
  EXPECT_NE(stalled.find(R"("finish_reason":"length")"), std::string::npos) << stalled;
}

TEST(Faults, GarbageInPlaceOfAnAnswerIsNotHttp) {
  const auto cluster = start();
  const std::string& url = cluster->endpoints(0).url;
  ASSERT_EQ(order(url, R"({"kind":"garbage","target":"http","count":1})").status, 200);
  EXPECT_NE(complete(url).header.find("no field \x01 name"), std::string::npos);
  EXPECT_EQ(complete(url).status, 200);
}

// Waits for the second run of an engine that has completed something in its first one. The answer
// to the order is the last message of the first run.
testing::AssertionResult begins_again(const SimulatedCluster& cluster, std::uint32_t engine) {
  const std::uint16_t port = port_of(cluster.endpoints(engine).url);
  if (!fakes::eventually([&] { return cluster.counters(engine).requests == 0; })) {
    return testing::AssertionFailure() << "it has not ended";
  }
  if (!fakes::eventually([&] { return fakes::RawSocket::listens(port); })) {
    return testing::AssertionFailure() << "it is not there again";
  }
  return testing::AssertionSuccess();
}

TEST(Faults, ARestartForgetsEverythingAndKeepsThePorts) {
  const auto cluster = start();
  const std::string& url = cluster->endpoints(0).url;
  const std::string before = complete(url).body;
  EXPECT_NE(get(url, "/sim/blocks").body.find(R"("sequence":0,"delivered":0)"), std::string::npos);
  ASSERT_EQ(order(url, R"({"kind":"restart","ms":30})").status, 200);
  ASSERT_TRUE(begins_again(*cluster, 0));
  EXPECT_TRUE(get(url, "/sim/blocks").body.starts_with(R"({"life":1,"sequence":null,)"));
  EXPECT_EQ(cluster->counters(0).requests, 0U);
  EXPECT_EQ(cluster->counters(0).blocks_cached, 0U);
  EXPECT_EQ(complete(url).status, 200);
  EXPECT_NE(get(url, "/sim/blocks").body.find(R"("sequence":0,"delivered":0)"), std::string::npos);
  EXPECT_NE(get(url, "/fault").body.find(R"("kind":"restart")"), std::string::npos);
}

TEST(Faults, ARestartDoesNotWaitForAnotherEnginesRestart) {
  SimulateSettings settings = settings_of_one();
  settings.engines = 2;
  const auto cluster = SimulatedCluster::start(settings);
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  const std::string slow = (*cluster)->endpoints(0).url;
  const std::string quick = (*cluster)->endpoints(1).url;
  ASSERT_EQ(complete(quick).status, 200);
  ASSERT_EQ(order(slow, R"({"kind":"restart","ms":600000})").status, 200);
  ASSERT_EQ(order(quick, R"({"kind":"restart"})").status, 200);
  EXPECT_TRUE(begins_again(**cluster, 1));
  EXPECT_FALSE(fakes::RawSocket::listens(port_of(slow)));
}

TEST(Faults, ARestartDoesNotWaitForASlowAnswer) {
  const auto cluster = start({"kind=slow-probe,ms=600000,count=1"});
  const std::string& url = cluster->endpoints(0).url;
  ASSERT_EQ(complete(url).status, 200);
  auto probe = fakes::RawSocket::connect(port_of(url));
  probe.send(wire_text_of({.method = "GET", .path = "/health"}));
  ASSERT_TRUE(fakes::eventually([&] {
    return get(url, "/fault?since=0").body.find(R"("strikes":[{)") != std::string::npos;
  }));
  ASSERT_EQ(order(url, R"({"kind":"restart"})").status, 200);
  EXPECT_EQ(probe.receive_all(), "");
  EXPECT_TRUE(begins_again(*cluster, 0));
}

TEST(Faults, WrongOrdersAreRefusedWithAReason) {
  const auto cluster = start();
  const std::string& url = cluster->endpoints(0).url;
  EXPECT_EQ(order(url, "{").status, 400);
  EXPECT_EQ(order(url, R"({"kind":"drop","engine":1})").status, 400);
  EXPECT_NE(order(url, R"({"kind":"flood"})").body.find("Known kinds"), std::string::npos);
  SimulateSettings settings = settings_of_one();
  settings.faults = {"kind=drop,engine=1"};
  EXPECT_NE(SimulatedCluster::start(settings).error().message.find("there are 1 engines"),
            std::string::npos);
  settings.faults = {"kind=restart"};
  EXPECT_NE(SimulatedCluster::start(settings).error().message.find("give p"), std::string::npos);
}

TEST(Faults, EndedFaultsStayListed) {
  const auto cluster = start({"kind=status500"});
  const std::string& url = cluster->endpoints(0).url;
  EXPECT_EQ(complete(url).status, 500);
  EXPECT_EQ(ask(url, {.method = "DELETE", .path = "/fault"}).status, 200);
  EXPECT_EQ(complete(url).status, 200);
  EXPECT_NE(get(url, "/fault").body.find(R"("strikes_total":1)"), std::string::npos);
}

}  // namespace
}  // namespace sightline::cluster
