// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// What removes a worker from the routing, and what drops its blocks. One test for each row of the
// table in member.h.
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

Probe healthy() {
  return {.health = Done{},
          .models = std::vector<ServedModel>{{"m", "", 4096}},
          .sources = one_source(),
          .load = ServerLoad{.block_size = 16, .ranks = {{0, 0, 0, 0}}}};
}

Probe failed(Error error) {
  Probe probe;
  probe.health = std::move(error);
  return probe;
}
Probe silent() { return failed(worker_error(ErrorCode::Timeout, "no answer in time", true)); }
Probe broken() { return failed(worker_error(ErrorCode::Unavailable, "broke off", true)); }
Probe refused() {
  Probe probe = failed(worker_error(ErrorCode::Unavailable, "connection refused", true));
  probe.refused = true;
  return probe;
}
Probe unwell() {
  Probe probe = failed(worker_error(ErrorCode::Unavailable, "/health answers 503", false));
  probe.is_unwell = true;
  return probe;
}

Error timeout() { return worker_error(ErrorCode::Timeout, "did not answer in time", false); }
Error hung_up() { return worker_error(ErrorCode::Unavailable, "closed the connection", true); }
Error busy() { return worker_error(ErrorCode::Overloaded, "cannot serve now", true); }

class BlameTest : public FleetFixture {
 protected:
  BlameTest() { set_workers({"w", "b", "c"}); }

  void set_workers(const std::vector<std::string>& names) {
    specs_.clear();
    for (const std::string& name : names)
      specs_.push_back(spec_of("name=" + name + ",url=http://h:1"));
    fleet_.set_workers(specs_);
    for (const WorkerSpec& spec : specs_) fleet_.apply_probe(spec, healthy());
  }
  // A probe of each worker begins, takes two seconds, and has this result for `name`.
  void probe(const Probe& brought, const std::string& name = "w") {
    clock_.advance(seconds(5));
    (void)fleet_.take_due_probes();
    clock_.advance(seconds(2));
    for (const WorkerSpec& spec : specs_) {
      fleet_.apply_probe(spec, spec.name == name ? brought : healthy());
    }
  }
  void probe_all(const Probe& brought) {
    (void)fleet_.take_due_probes();
    for (const WorkerSpec& spec : specs_) fleet_.apply_probe(spec, brought);
  }

  std::vector<WorkerSpec> specs_;
};

TEST_F(BlameTest, SilentWorkerReturnsWithItsBlocks) {
  const auto before = feeds();
  probe(silent());
  EXPECT_EQ(state(), WorkerState::Suspect);
  for (int i = 0; i < 5; ++i) {
    probe(silent());
    EXPECT_EQ(state(), WorkerState::Down);
    EXPECT_EQ(worker()->reason, "no answer in time");
  }
  EXPECT_EQ(feeds(), before);
  EXPECT_EQ(live_.size(), 3u);
  tell_health(before[0].cache, FeedHealth::Disconnected);
  probe(healthy());
  EXPECT_EQ(state(), WorkerState::Unverified) << "the event stream does not vouch for them";
  tell_health(before[0].cache, FeedHealth::Verified);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(feeds(), before);
}

TEST_F(BlameTest, OnlyARefusedConnectionDropsBlocksImmediately) {
  const CacheId engine = cache_of(0);
  worker()->life->raise();
  last_event_[engine] = clock_.now() + seconds(6);
  probe(refused());
  EXPECT_EQ(state(), WorkerState::Down);
  EXPECT_FALSE(live_.contains(engine));
}

TEST_F(BlameTest, AnswersOrEventsDuringAProbeOutweighItsSilence) {
  const auto before = worker();
  const CacheId engine = cache_of(0);
  for (const bool by_events : {true, false, true, false}) {
    clock_.advance(seconds(5));
    (void)fleet_.take_due_probes();
    clock_.advance(seconds(1));
    if (by_events) {
      last_event_[engine] = clock_.now();
    } else {
      before->life->raise();
    }
    clock_.advance(seconds(1));
    for (const WorkerSpec& spec : specs_) {
      fleet_.apply_probe(spec, spec.name == "w" ? (by_events ? silent() : broken()) : healthy());
    }
    EXPECT_EQ(worker(), before) << "nothing of it changes, nothing is published";
    EXPECT_EQ(fleet_.take_due_probes().next, clock_.now() + seconds(5));
  }
  clock_.advance(seconds(5));
  probe(silent());
  EXPECT_EQ(state(), WorkerState::Suspect) << "signs of before the probe do not count";
}

TEST_F(BlameTest, ASignOfLifeBringsADownWorkerBack) {
  probe(silent());
  probe(silent());
  ASSERT_EQ(state(), WorkerState::Down);
  clock_.advance(seconds(5));
  (void)fleet_.take_due_probes();
  worker()->life->raise();
  fleet_.apply_probe(specs_[0], silent());
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(BlameTest, SecondUnhealthyProbeCountsDespiteTraffic) {
  for (const WorkerState next : {WorkerState::Ready, WorkerState::Suspect, WorkerState::Down}) {
    clock_.advance(seconds(5));
    (void)fleet_.take_due_probes();
    worker()->life->raise();
    fleet_.apply_probe(specs_[0], unwell());
    EXPECT_EQ(state(), next);
  }
  EXPECT_EQ(live_.size(), 3u);
}

TEST_F(BlameTest, OneBrokenProbeIsRepeatedSoon) {
  probe(broken());
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(fleet_.take_due_probes().next, clock_.now() + milliseconds(500));
  probe(broken());
  EXPECT_EQ(state(), WorkerState::Suspect);
  probe(broken());
  EXPECT_EQ(state(), WorkerState::Down);
  EXPECT_EQ(live_.size(), 3u);
}

TEST_F(BlameTest, RoutersOwnErrorBlamesNoWorker) {
  const auto before = worker();
  for (int i = 0; i < 5; ++i) probe(failed(internal_error("no file descriptors left")));
  EXPECT_EQ(worker(), before);
  // It does not clear the worker's state either.
  probe(silent());
  probe(silent());
  probe(failed(internal_error("no file descriptors left")));
  EXPECT_EQ(state(), WorkerState::Down);
}

TEST_F(BlameTest, WhenMostAreSlowTheyStayRoutedUntilFewAre) {
  probe_all(silent());
  probe_all(silent());
  probe_all(silent());
  for (const char* name : {"w", "b", "c"}) {
    EXPECT_EQ(state(name), WorkerState::Ready) << name;
    EXPECT_EQ(worker(name)->reason,
              "no answer in time: still gets requests, because most workers are slow");
    EXPECT_TRUE(worker(name)->is_precise());
  }
  EXPECT_TRUE(metric_has("sightline_workers_kept_routed 3\n"));
  EXPECT_EQ(live_.size(), 3u);
  fleet_.apply_probe(specs_[1], healthy());
  EXPECT_EQ(state("w"), WorkerState::Ready) << "two of three";
  EXPECT_TRUE(metric_has("sightline_workers_kept_routed 2\n"));
  fleet_.apply_probe(specs_[2], healthy());
  EXPECT_EQ(state("w"), WorkerState::Down) << "one of three";
  EXPECT_TRUE(metric_has("sightline_workers_kept_routed 0\n"));
  EXPECT_EQ(worker("b")->reason, "");
}

TEST_F(BlameTest, HalfOfTheWorkersIsNotMost) {
  set_workers({"w", "b"});
  probe(silent());
  EXPECT_EQ(state(), WorkerState::Suspect);
  probe(silent());
  EXPECT_EQ(state(), WorkerState::Down);
}

TEST_F(BlameTest, RefusedDrainedAndUnhealthyWorkersAreNotSlow) {
  for (int i = 0; i < 3; ++i) {
    fleet_.apply_probe(specs_[1], unwell());
    fleet_.apply_probe(specs_[2], refused());
  }
  EXPECT_EQ(state("b"), WorkerState::Down);
  EXPECT_EQ(state("c"), WorkerState::Down);
  EXPECT_TRUE(metric_has("sightline_workers_kept_routed 0\n"));
  fleet_.apply_probe(specs_[0], silent());
  EXPECT_EQ(state("w"), WorkerState::Ready) << "it is the only one left, and only slow";
  fleet_.apply_probe(specs_[0], refused());
  EXPECT_EQ(state("w"), WorkerState::Down);
  set_workers({"x", "y"});
  EXPECT_TRUE(metric_has("sightline_workers_kept_routed 0\n"));
  fleet_.apply_probe(specs_[0], silent());
  EXPECT_EQ(state("x"), WorkerState::Suspect);
}

TEST_F(BlameTest, KeptWorkerIsRemovedForAnotherFailure) {
  probe_all(silent());
  probe_all(silent());
  ASSERT_EQ(state("w"), WorkerState::Ready);
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state("w"), WorkerState::Ready);
  fleet_.report_failure("w", hung_up());
  fleet_.report_failure("w", hung_up());
  EXPECT_EQ(state("w"), WorkerState::Down);
  EXPECT_EQ(state("b"), WorkerState::Ready) << "still two of two";
}

TEST_F(BlameTest, TimeoutIsNoFailureWhileTrafficFlows) {
  const CacheId engine = cache_of(0);
  worker()->life->raise();
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Ready);
  probe(healthy());
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Ready) << "in the period before";
  probe(healthy());
  last_event_[engine] = clock_.now() - seconds(9);
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Ready);
  last_event_[engine] = clock_.now() - seconds(11);
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Suspect);
  EXPECT_EQ(worker()->reason, "requests fail: did not answer in time");
}

TEST_F(BlameTest, FrequentProbesKeepSignsOfLife) {
  probe(healthy());
  worker()->life->raise();
  for (int i = 0; i < 3; ++i) {
    fleet_.report_failure("w", hung_up());
    (void)fleet_.take_due_probes();
    fleet_.apply_probe(specs_[0], healthy());
    fleet_.report_success("w");
  }
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Ready);
  probe(healthy());
  probe(healthy());
  fleet_.report_failure("w", timeout());
  EXPECT_EQ(state(), WorkerState::Suspect);
}

TEST_F(BlameTest, ARequestThatAloneFailsBringsAProbeAndNothingElse) {
  int wakes = 0;
  fleet_.on_probe_sooner([&wakes] { ++wakes; });
  const auto before = worker();
  for (int i = 0; i < 3; ++i) {
    fleet_.report_failure("w", hung_up());
    EXPECT_EQ(worker(), before);
    EXPECT_EQ(wakes, i + 1);
    EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u) << "at once";
    for (const WorkerSpec& spec : specs_) fleet_.apply_probe(spec, healthy());
    fleet_.report_success("w");
  }
  fleet_.report_failure("w", hung_up());
  fleet_.report_failure("w", hung_up());
  EXPECT_EQ(state(), WorkerState::Suspect) << "two in a row";
}

TEST_F(BlameTest, AnswerRequestedTooLargeIsNotTheWorkersFault) {
  const auto before = worker();
  for (int i = 0; i < 5; ++i) {
    fleet_.report_failure("w", worker_error(ErrorCode::TooLarge, "answer too large", false));
  }
  EXPECT_EQ(worker(), before);
}

TEST_F(BlameTest, RepeatedRefusalsLengthenTheSuspectTime) {
  for (const int wait_ms : {500, 1000, 2000, 4000}) {
    fleet_.report_failure("w", busy());
    EXPECT_EQ(state(), WorkerState::Suspect);
    EXPECT_EQ(worker()->reason, "requests fail: cannot serve now");
    for (int i = 0; i < 20; ++i) fleet_.report_failure("w", busy());
    clock_.advance(milliseconds(wait_ms - 1));
    fleet_.apply_probe(specs_[0], healthy());
    EXPECT_EQ(state(), WorkerState::Suspect) << wait_ms;
    clock_.advance(milliseconds(1));
    (void)fleet_.take_due_probes();
    fleet_.apply_probe(specs_[0], healthy());
    EXPECT_EQ(state(), WorkerState::Ready) << wait_ms;
  }
  fleet_.report_success("w");
  fleet_.report_failure("w", busy());
  clock_.advance(milliseconds(500));
  fleet_.apply_probe(specs_[0], healthy());
  EXPECT_EQ(state(), WorkerState::Ready) << "a success forgets the failures before it";
}

TEST_F(BlameTest, ChangedEndpointsAreConfirmedBeforeBlocksAreDropped) {
  const auto before = feeds();
  Probe none = healthy();
  none.sources = std::vector<EventSource>{};
  Probe missing = healthy();
  missing.sources = worker_error(ErrorCode::NotFound, "/kv_event_sources answers 404", false);
  probe(none);
  EXPECT_EQ(feeds(), before);
  EXPECT_EQ(fleet_.take_due_probes().next, clock_.now() + milliseconds(500));
  probe(healthy());
  probe(none);
  EXPECT_EQ(feeds(), before) << "not twice in a row";
  for (int i = 0; i < 3; ++i) probe(missing);
  EXPECT_EQ(feeds(), before);
  EXPECT_EQ(state(), WorkerState::Ready);
  probe(none);
  probe(none);
  EXPECT_TRUE(feeds().empty());
  EXPECT_EQ(state(), WorkerState::Unverified);
}

TEST_F(BlameTest, OneReadingOfTheMetricsTakesNoRankAway) {
  set_workers({});
  specs_ = {spec_of("name=w,url=http://h:1,events=tcp://h:5557,dp=2")};
  fleet_.set_workers(specs_);
  Probe two = healthy();
  two.sources = worker_error(ErrorCode::NotFound, "/kv_event_sources answers 404", false);
  two.load->ranks = {{0, 0, 0, 0}, {1, 0, 0, 0}};
  Probe one = two;
  one.load->ranks = {{0, 0, 0, 0}};
  fleet_.apply_probe(specs_[0], two);
  ASSERT_EQ(feeds().size(), 2u);
  probe(one);
  EXPECT_EQ(feeds().size(), 2u);
  EXPECT_EQ(state(), WorkerState::Ready);
  probe(two);
  probe(one);
  EXPECT_EQ(feeds().size(), 2u);
  probe(one);
  EXPECT_EQ(state(), WorkerState::Excluded);
}

TEST_F(BlameTest, UnauthorizedCallsKeepTheWorkerRoutedWithARemedy) {
  Probe guarded = healthy();
  guarded.models = worker_error(ErrorCode::Unauthorized, "/v1/models answers 401", false);
  probe(guarded);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason,
            "/v1/models answers 401: give this worker api_key_file=FILE with the engine's API key");
  EXPECT_EQ(worker()->models.size(), 1u) << "what was known stays so";
  guarded.models = worker_error(ErrorCode::Timeout, "no answer in time", true);
  probe(guarded);
  EXPECT_NE(worker()->reason, "") << "silence settles nothing";
  probe(healthy());
  EXPECT_EQ(worker()->reason, "");
}

TEST_F(BlameTest, AnotherKeyFileIsNoOtherEngine) {
  const auto before = feeds();
  specs_[0] = spec_of("name=w,url=http://h:1,api_key_file=/run/key");
  fleet_.set_workers(specs_);
  EXPECT_EQ(feeds(), before);
  EXPECT_EQ(state(), WorkerState::Ready);
  Probe guarded = healthy();
  guarded.models = worker_error(ErrorCode::Unauthorized, "/v1/models answers 401", false);
  probe(guarded);
  EXPECT_EQ(worker()->reason,
            "/v1/models answers 401: the key in api_key_file=/run/key is not the engine's");
  guarded.key_problem = "api_key_file=/run/key is empty";
  probe(guarded);
  EXPECT_EQ(worker()->reason, "api_key_file=/run/key is empty");
}

TEST_F(BlameTest, WhatChangesNothingIsNotPublished) {
  const auto before = fleet_.snapshot();
  for (const WorkerSpec& spec : specs_) {
    fleet_.apply_probe(spec, healthy());
    fleet_.apply_load(spec, *healthy().load);
  }
  EXPECT_EQ(fleet_.snapshot(), before);
  fleet_.apply_load(specs_[0], {.running = 1});
  EXPECT_NE(fleet_.snapshot(), before);
  EXPECT_EQ(worker("b"), before->find("b"));
}

}  // namespace
}  // namespace sightline::fleet
