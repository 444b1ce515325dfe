// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/fleet_control.h"

#include <atomic>
#include <optional>

#include <gtest/gtest.h>

#include "tests/fakes/engine_facts_server.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"

namespace sightline::fleet {
namespace {

using contract::WorkerSpec;
using std::chrono::milliseconds;
using test::EngineFactsServer;
using test::eventually;

WorkerSpec spec_of(const std::string& name, const std::string& url) {
  return *contract::parse_worker("name=" + name + ",url=" + url);
}

class FleetControlTest : public testing::Test {
 protected:
  // On a busy machine, no probe is late.
  FleetControlTest() : FleetControlTest(std::chrono::seconds(60)) {}

  explicit FleetControlTest(milliseconds probe_timeout)
      : settings_{.probe_interval = milliseconds(50),
                  .scrape_interval = milliseconds(50),
                  .probe_timeout = probe_timeout},
        fleet_({.probe_interval = settings_.probe_interval, .suspect_backoff = milliseconds(20)},
               {[this](const Worker&, const Rank& rank) {
                  ++live_feeds_;
                  fleet_.take_facts(rank.feed->cache, {.health = operations::FeedHealth::Verified});
                },
                [this](CacheId) { --live_feeds_; }},
               metrics_, system_clock()),
        control_(settings_, {fleet_, names_, metrics_, system_clock()}) {}

  [[nodiscard]] bool comes_to(const std::string& name, WorkerState state) const {
    return eventually([&] {
      const auto worker = fleet_.snapshot()->find(name);
      return worker && worker->state == state;
    });
  }

  contract::FleetSettings settings_;
  runtime::Metrics metrics_;
  hosts::Lookup names_{system_clock()};
  std::atomic<int> live_feeds_ = 0;
  Fleet fleet_;
  FleetControl control_;
};

TEST_F(FleetControlTest, AWorkerThatComesLateIsFoundAndConfiguresItself) {
  std::uint16_t port = 0;
  {
    const EngineFactsServer first;
    port = first.port();
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(port);
  control_.start({spec_of("w", url)});
  ASSERT_NE(fleet_.snapshot()->find("w"), nullptr);
  EXPECT_TRUE(eventually([this] {
    return fleet_.snapshot()->find("w")->reason == "has not answered yet: connection refused";
  }));
  EngineFactsServer engine(port);
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  EXPECT_EQ(fleet_.snapshot()->find("w")->ranks.at(0).feed.value().endpoints.events,
            "tcp://127.0.0.1:5557");
  EXPECT_EQ(live_feeds_, 1);
  engine.stop();
  ASSERT_TRUE(comes_to("w", WorkerState::Down));
  EXPECT_TRUE(eventually([this] { return live_feeds_ == 0; }));
}

TEST_F(FleetControlTest, ReadsTheLoadRepeatedly) {
  EngineFactsServer engine;
  control_.start({spec_of("w", engine.url())});
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  engine.set("/metrics", {200, EngineFactsServer::metrics_text(9)});
  EXPECT_TRUE(eventually([this] { return fleet_.snapshot()->find("w")->running == 9; }));
  EXPECT_EQ(fleet_.snapshot()->find("w")->kv_usage, 0.25);
}

TEST_F(FleetControlTest, AsksForTheVersionUntilReportedAndAfterOutages) {
  EngineFactsServer engine;
  engine.set("/version", {500, ""});
  control_.start({spec_of("w", engine.url())});
  const auto version = [this] {
    const auto worker = fleet_.snapshot()->find("w");
    return worker->version ? worker->version->text : "";
  };
  ASSERT_TRUE(eventually([&] { return engine.times_asked("/version") >= 2; }));
  EXPECT_EQ(fleet_.snapshot()->find("w")->state, WorkerState::Ready);
  EXPECT_EQ(version(), "");
  engine.set("/version", {200, R"({"version":"0.23.0"})"});
  ASSERT_TRUE(eventually([&] { return version() == "0.23.0"; }));
  const int asked = engine.times_asked("/version");
  const int probes = engine.times_asked("/health");
  ASSERT_TRUE(eventually([&] { return engine.times_asked("/health") >= probes + 5; }));
  EXPECT_EQ(engine.times_asked("/version"), asked);
  engine.set("/version", {200, R"({"version":"0.24.0"})"});
  engine.set("/health", {503, ""});
  ASSERT_TRUE(comes_to("w", WorkerState::Down));
  engine.set("/health", {200, ""});
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  EXPECT_TRUE(eventually([&] { return version() == "0.24.0"; }));
}

TEST_F(FleetControlTest, AsksAServerWithoutAVersionSeldom) {
  EngineFactsServer engine;
  engine.set("/version", {404, ""});
  control_.start({spec_of("w", engine.url())});
  ASSERT_TRUE(eventually([&] { return engine.times_asked("/health") >= 10; }));
  EXPECT_EQ(engine.times_asked("/version"), 1);
  EXPECT_EQ(fleet_.snapshot()->find("w")->state, WorkerState::Ready);
}

class ImpatientFleetControlTest : public FleetControlTest {
 protected:
  ImpatientFleetControlTest() : FleetControlTest(milliseconds(300)) {}
};

TEST_F(ImpatientFleetControlTest, ASilentWorkerDoesNotHoldUpTheOthers) {
  const test::ListeningSocket silent;
  EngineFactsServer engine;
  control_.start({spec_of("silent", "http://127.0.0.1:" + std::to_string(silent.port())),
                  spec_of("w", engine.url())});
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  EXPECT_TRUE(eventually([this] {
    return fleet_.snapshot()->find("silent")->reason == "has not answered yet: no answer in time";
  }));
  EXPECT_EQ(fleet_.snapshot()->find("silent")->state, WorkerState::Starting);
}

TEST_F(FleetControlTest, ASuspectWorkerIsProbedAndComesBack) {
  EngineFactsServer engine;
  control_.start({spec_of("w", engine.url())});
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  fleet_.report_failure("w", worker_error(ErrorCode::Overloaded, "cannot serve now", true));
  EXPECT_TRUE(comes_to("w", WorkerState::Ready));
  EXPECT_EQ(live_feeds_, 1);
}

TEST_F(FleetControlTest, AGoneWorkerIsDownAfterOneFailedRequest) {
  EngineFactsServer engine;
  control_.start({spec_of("w", engine.url())});
  ASSERT_TRUE(comes_to("w", WorkerState::Ready));
  engine.stop();
  fleet_.report_failure("w", worker_error(ErrorCode::Unavailable, "no connection", true));
  ASSERT_TRUE(comes_to("w", WorkerState::Down));
  EXPECT_TRUE(eventually([this] { return live_feeds_ == 0; }));
}

TEST_F(FleetControlTest, AppliesChangedListsAndRefusesBadOnes) {
  EngineFactsServer first;
  EngineFactsServer second;
  control_.start({spec_of("a", first.url())});
  ASSERT_TRUE(comes_to("a", WorkerState::Ready));
  control_.reload_workers(client_error(ErrorCode::InvalidArgument, "router.yaml:3: no"));
  control_.reload_workers(std::vector<WorkerSpec>{spec_of("b", second.url())});
  ASSERT_TRUE(comes_to("b", WorkerState::Ready));
  EXPECT_EQ(fleet_.snapshot()->find("a"), nullptr);
  EXPECT_EQ(live_feeds_, 1);
  const std::string text = metrics_.scrape();
  EXPECT_NE(text.find("sightline_config_reloads_total{result=\"applied\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("sightline_config_reloads_total{result=\"refused\"} 1\n"), std::string::npos);
}

TEST_F(FleetControlTest, StopReturnsWhileProbesRun) {
  const test::ListeningSocket silent;
  control_.start({spec_of("silent", "http://127.0.0.1:" + std::to_string(silent.port()))});
  control_.stop();
  control_.stop();
  EXPECT_EQ(fleet_.snapshot()->find("silent")->state, WorkerState::Starting);
}

}  // namespace
}  // namespace sightline::fleet
