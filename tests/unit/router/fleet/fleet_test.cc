// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/fleet.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::fleet {
namespace {

using contract::WorkerSpec;
using std::chrono::milliseconds;
using std::chrono::seconds;

WorkerSpec spec_of(const std::string& text) { return *contract::parse_worker(text); }

Probe healthy_probe() {
  const EventSource source{
      .rank = 0, .enabled = true, .endpoint = "tcp://*:5557", .replay_endpoint = "tcp://*:5657"};
  return {.health = Done{},
          .models = std::vector<ServedModel>{{"m", "", 4096}, {"ad", "m", 0}},
          .sources = std::vector<EventSource>{source},
          .load = EngineLoad{
              .running = 1, .waiting = 2, .kv_usage = 0.5, .block_size = 16, .ranks = 1}};
}

Probe failed_probe(bool refused) {
  Probe probe;
  probe.health = worker_error(ErrorCode::Unavailable,
                              refused ? "connection refused" : "no answer within 2000 ms", true);
  probe.refused = refused;
  return probe;
}

class FleetTest : public testing::Test {
 protected:
  FleetTest()
      : fleet_({.probe_interval = seconds(5)},
               {[this](const EngineEndpoints& engine) {
                  live_[engine.engine] = engine;
                  if (follows_events_) fleet_.set_event_health(engine.engine, "");
                },
                [this](EngineId engine) { EXPECT_EQ(live_.erase(engine), 1u); }},
               metrics_, clock_) {}

  [[nodiscard]] std::shared_ptr<const Worker> worker(const std::string& name = "w") const {
    return fleet_.snapshot()->find(name);
  }
  [[nodiscard]] WorkerState state(const std::string& name = "w") const {
    return worker(name)->state;
  }
  void start(const std::string& text = "name=w,url=http://h:1") {
    spec_ = spec_of(text);
    fleet_.set_workers({spec_});
  }
  void start_ready(const std::string& text = "name=w,url=http://h:1") {
    start(text);
    fleet_.apply_probe(spec_, healthy_probe());
  }
  [[nodiscard]] bool metric_has(const std::string& line) const {
    return metrics_.scrape().find(line) != std::string::npos;
  }

  runtime::Metrics metrics_;
  test::ManualClock clock_;
  std::map<EngineId, EngineEndpoints> live_;  // engines announced and not removed
  bool follows_events_ = true;                // and says so
  Fleet fleet_;
  WorkerSpec spec_;
};

TEST_F(FleetTest, AWorkerStartsUntilItAnswers) {
  start();
  EXPECT_EQ(state(), WorkerState::Starting);
  EXPECT_FALSE(worker()->is_routable());
  fleet_.apply_probe(spec_, failed_probe(true));
  EXPECT_EQ(state(), WorkerState::Starting);
  EXPECT_EQ(worker()->reason, "has not answered yet: connection refused");
  EXPECT_TRUE(live_.empty());
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "");
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"ready\"} 1\n"));
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"starting\"} 0\n"));
}

TEST_F(FleetTest, AnUrlAloneConfiguresItself) {
  start_ready();
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_EQ(live_.begin()->second.events, "tcp://h:5557");
  EXPECT_EQ(live_.begin()->second.replay, "tcp://h:5657");
  EXPECT_EQ(worker()->block_size, 16u);
  EXPECT_EQ(worker()->block_size_configured, 16u);
  EXPECT_EQ(worker()->max_model_len, 4096u);
  EXPECT_EQ(worker()->running, 1u);
  EXPECT_EQ(worker()->waiting, 2u);
  EXPECT_EQ(worker()->kv_usage, 0.5);
  EXPECT_TRUE(worker()->serves("ad"));
  EXPECT_FALSE(worker()->serves("other"));
  EXPECT_EQ(fleet_.snapshot()->find(live_.begin()->first), worker());
}

TEST_F(FleetTest, AWorkerIsUnverifiedUntilItsEventsAreFollowedAndWheneverTheyAreNot) {
  follows_events_ = false;
  start_ready();
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->reason, "waiting for the first event connection");
  const EngineId engine = live_.begin()->first;
  fleet_.set_event_health(engine, "replaying events");
  EXPECT_EQ(worker()->reason, "replaying events");
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_FALSE(worker()->is_precise(worker()->engines.front()));
  fleet_.set_event_health(engine, "");
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "");
  EXPECT_TRUE(worker()->is_precise(worker()->engines.front()));
  fleet_.set_event_health(engine, "event connection lost");
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->reason, "event connection lost");
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"unverified\"} 1\n"));
}

TEST_F(FleetTest, TheHealthOfAnEngineThatIsGoneIsIgnored) {
  start_ready();
  const EngineId old = live_.begin()->first;
  fleet_.apply_probe(spec_, failed_probe(true));
  fleet_.apply_probe(spec_, healthy_probe());
  ASSERT_EQ(state(), WorkerState::Ready);
  fleet_.set_event_health(old, "event connection lost");
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(FleetTest, WithoutEventsItIsRoutedUnverified) {
  start();
  Probe probe = healthy_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_NE(worker()->reason.find("add events="), std::string::npos);
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_FALSE(worker()->is_precise());
}

TEST_F(FleetTest, SeveralRanksAreFollowedButNotPrecise) {
  start();
  Probe probe = healthy_probe();
  probe.sources->push_back({.rank = 1, .enabled = true, .endpoint = "tcp://*:5558"});
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->ranks, 2u);
  EXPECT_EQ(live_.size(), 2u);
}

TEST_F(FleetTest, ABlockSizeThatNobodyToldComesWithTheFirstEvent) {
  start();
  Probe probe = healthy_probe();
  probe.load->block_size = 0;
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Unverified);
  fleet_.set_block_size_from_events(live_.begin()->first, 32);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size, 32u);
}

TEST_F(FleetTest, EventsThatContradictTheOperatorExcludeTheWorkerLoudly) {
  start_ready("name=w,url=http://h:1,block_size=16");
  const EngineId engine = live_.begin()->first;
  fleet_.set_block_size_from_events(engine, 16);
  EXPECT_EQ(state(), WorkerState::Ready);
  fleet_.set_block_size_from_events(engine, 32);
  EXPECT_EQ(state(), WorkerState::Excluded);
  EXPECT_EQ(worker()->block_size, 32u);
  EXPECT_EQ(worker()->block_size_configured, 16u);
  EXPECT_NE(worker()->reason.find("32 tokens, configured are 16"), std::string::npos);
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Excluded) << "another look must not forget it";
}

TEST_F(FleetTest, EventsWinOverWhatTheEngineToldElsewhere) {
  start_ready();
  fleet_.set_block_size_from_events(live_.begin()->first, 32);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size, 32u);
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(worker()->block_size, 32u);
}

TEST_F(FleetTest, ARefusedConnectionIsDownAtOnceAndGivesUpItsEngines) {
  start_ready();
  fleet_.apply_probe(spec_, failed_probe(true));
  EXPECT_EQ(state(), WorkerState::Down);
  EXPECT_FALSE(worker()->is_routable());
  EXPECT_TRUE(live_.empty());
}

TEST_F(FleetTest, AWorkerThatComesBackGetsNewEngineIds) {
  start_ready();
  const EngineId old = live_.begin()->first;
  fleet_.apply_probe(spec_, failed_probe(true));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Ready);
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_GT(live_.begin()->first, old);
  fleet_.set_block_size_from_events(old, 64);
  EXPECT_EQ(worker()->block_size, 16u);
}

TEST_F(FleetTest, OneSilentProbeIsSuspectTwoAreDown) {
  start_ready();
  fleet_.apply_probe(spec_, failed_probe(false));
  EXPECT_EQ(state(), WorkerState::Suspect);
  EXPECT_EQ(live_.size(), 1u);
  fleet_.apply_probe(spec_, failed_probe(false));
  EXPECT_EQ(state(), WorkerState::Down);
  EXPECT_TRUE(live_.empty());
}

TEST_F(FleetTest, FailedRequestsMakeItSuspectForALongerTimeEachTime) {
  start_ready();
  (void)fleet_.take_due_probes();
  fleet_.apply_probe(spec_, healthy_probe());
  for (const int wait_ms : {500, 1000, 2000, 4000}) {
    fleet_.report_failure("w", "connection broke off");
    EXPECT_EQ(state(), WorkerState::Suspect);
    EXPECT_EQ(worker()->reason, "requests fail: connection broke off");
    for (int i = 0; i < 20; ++i) fleet_.report_failure("w", "all requests of that moment");
    clock_.advance(milliseconds(wait_ms - 1));
    fleet_.apply_probe(spec_, healthy_probe());
    EXPECT_EQ(state(), WorkerState::Suspect) << wait_ms;
    clock_.advance(milliseconds(1));
    EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u) << wait_ms;
    fleet_.apply_probe(spec_, healthy_probe());
    EXPECT_EQ(state(), WorkerState::Ready) << wait_ms;
  }
  fleet_.report_success("w");
  fleet_.report_failure("w", "again");
  clock_.advance(milliseconds(500));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Ready) << "a success forgets the failures before it";
}

TEST_F(FleetTest, AFailureBringsTheNextProbeForwardAndSaysSo) {
  start_ready();
  (void)fleet_.take_due_probes();
  fleet_.apply_probe(spec_, healthy_probe());
  int wakes = 0;
  fleet_.on_probe_sooner([&wakes] { ++wakes; });
  EXPECT_EQ(fleet_.take_due_probes().next, clock_.now() + seconds(5));
  fleet_.report_failure("w", "x");
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(fleet_.take_due_probes().next, clock_.now() + milliseconds(500));
}

TEST_F(FleetTest, AProbeUnderWayIsNotTakenAgain) {
  start();
  EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u);
  clock_.advance(seconds(60));
  EXPECT_TRUE(fleet_.take_due_probes().workers.empty());
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_TRUE(fleet_.take_due_probes().workers.empty());
  clock_.advance(seconds(5));
  EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u);
}

TEST_F(FleetTest, WorkersComeChangeAndGo) {
  const WorkerSpec a = spec_of("name=a,url=http://a:1");
  const WorkerSpec b = spec_of("name=b,url=http://b:1");
  fleet_.set_workers({a, b});
  fleet_.apply_probe(a, healthy_probe());
  fleet_.apply_probe(b, healthy_probe());
  ASSERT_EQ(live_.size(), 2u);
  const WorkerSpec moved = spec_of("name=b,url=http://elsewhere:1");
  const WorkerSpec c = spec_of("name=c,url=http://c:1");
  fleet_.set_workers({moved, c});
  EXPECT_EQ(worker("a"), nullptr);
  EXPECT_EQ(state("b"), WorkerState::Starting);
  EXPECT_EQ(worker("b")->url, "http://elsewhere:1");
  EXPECT_EQ(fleet_.snapshot()->workers.size(), 2u);
  EXPECT_TRUE(live_.empty());
  EXPECT_FALSE(metric_has("worker=\"a\""));
  EXPECT_TRUE(metric_has("worker=\"b\",state=\"starting\"} 1"));
  fleet_.apply_probe(b, healthy_probe());
  EXPECT_EQ(state("b"), WorkerState::Starting) << "a probe of the old address says nothing";
}

TEST_F(FleetTest, AnUnchangedListChangesNothing) {
  start_ready();
  const auto before = worker();
  fleet_.set_workers({spec_});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->revision, before->revision);
  EXPECT_EQ(worker()->load, before->load);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(FleetTest, DrainingKeepsTheEnginesAndTakesNoRequests) {
  start_ready();
  const EngineId engine = live_.begin()->first;
  fleet_.set_workers({spec_of("name=w,url=http://h:1,drain=true")});
  EXPECT_EQ(state(), WorkerState::Draining);
  EXPECT_FALSE(worker()->is_routable());
  EXPECT_TRUE(live_.contains(engine));
  fleet_.set_workers({spec_});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_TRUE(live_.contains(engine));
}

TEST_F(FleetTest, MovedEventEndpointsAreFollowed) {
  start_ready();
  Probe probe = healthy_probe();
  probe.sources->at(0).endpoint = "tcp://*:6000";
  fleet_.apply_probe(spec_, probe);
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_EQ(live_.begin()->second.events, "tcp://h:6000");
}

TEST_F(FleetTest, AnEngineThatDoesNotTellForAMomentKeepsItsEvents) {
  start_ready();
  Probe probe = healthy_probe();
  probe.sources = worker_error(ErrorCode::Timeout, "no answer", true);
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(FleetTest, LoadIsPublishedWithoutANewRevisionOfTheWorker) {
  start_ready();
  const auto before = worker();
  fleet_.apply_load(spec_, {.running = 7, .waiting = 3, .kv_usage = 0.25});
  EXPECT_EQ(worker()->running, 7u);
  EXPECT_EQ(worker()->kv_usage, 0.25);
  EXPECT_EQ(worker()->block_size, 16u);
  EXPECT_EQ(worker()->revision, before->revision);
  EXPECT_EQ(worker()->load, before->load);
  EXPECT_EQ(before->running, 1u) << "a snapshot never changes";
}

}  // namespace
}  // namespace sightline::fleet
