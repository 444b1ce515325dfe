// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// How requests show the state of a worker: tokens, announcements, sleep.
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

class Work : public FleetFixture {
 protected:
  Work() {
    fleet_.set_workers({spec_});
    probe();
  }
  void probe() {
    fleet_.apply_probe(spec_, {.health = Done{},
                               .models = std::vector<ServedModel>{{"m", ""}},
                               .sources = one_source(),
                               .load = ServerLoad{.block_size = 16}});
  }
  BookedWork request() { return worker()->ranks[0].load->reserve({}, clock_.now()); }
  // One look each second, with a call of `meanwhile` before it.
  void watch(
      int times, const std::function<void()>& meanwhile = [] {}) {
    for (int i = 0; i < times; ++i) {
      clock_.advance(seconds(1));
      meanwhile();
      fleet_.check_work();
    }
  }

  const WorkerSpec spec_ = spec_of("name=w,url=http://h:1");
};

TEST_F(Work, WithoutATokenForAMinuteAWorkerWithRequestsIsSuspect) {
  tell_block_size(cache_of("w"), 16);
  auto held = request();
  watch(59);
  EXPECT_EQ(state(), WorkerState::Ready);
  watch(1);
  EXPECT_EQ(state(), WorkerState::Suspect);
  EXPECT_NE(worker()->reason.find("60 s (fleet.wedge_timeout)"), std::string::npos)
      << worker()->reason;
  probe();
  EXPECT_EQ(state(), WorkerState::Suspect) << "its health endpoint says nothing of that";
  worker()->life->raise();
  watch(1);
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(Work, ALongPrefillBesideTokensOfOthersIsNone) {
  auto prefill = request();
  watch(200, [this] { worker()->life->raise(); });
  EXPECT_NE(state(), WorkerState::Suspect);
}

TEST_F(Work, TokensThatTheEngineCountsAreTokens) {
  auto held = request();
  double generated = 0;
  watch(200,
        [&] { fleet_.apply_load(spec_, {.generated_tokens = ++generated, .block_size = 16}); });
  EXPECT_NE(state(), WorkerState::Suspect);
  watch(60, [&] { fleet_.apply_load(spec_, {.generated_tokens = generated, .block_size = 16}); });
  EXPECT_EQ(state(), WorkerState::Suspect);
}

TEST_F(Work, IdleWorkerIsNotWedgedAndAWedgedOneRetries) {
  watch(200);
  EXPECT_NE(state(), WorkerState::Suspect);
  {
    auto held = request();
    watch(61);
    EXPECT_EQ(state(), WorkerState::Suspect);
  }
  watch(59);
  EXPECT_EQ(state(), WorkerState::Suspect);
  watch(1);
  EXPECT_NE(state(), WorkerState::Suspect);
}

TEST_F(Work, RestartedEngineIsNotWedged) {
  auto held = request();
  watch(61);
  EXPECT_EQ(state(), WorkerState::Suspect);
  Probe refused;
  refused.health = worker_error(ErrorCode::Unavailable, "connection refused", true);
  refused.refused = true;
  fleet_.apply_probe(spec_, refused);
  watch(1);
  EXPECT_EQ(state(), WorkerState::Down);
  probe();
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(Work, ReportsComputedBlocksWithoutEvents) {
  EXPECT_EQ(state(), WorkerState::Ready);
  worker()->computed->add(kUnannouncedBlocksMin - 1);
  watch(20);
  EXPECT_EQ(state(), WorkerState::Ready);
  worker()->computed->add(1);
  watch(10);
  EXPECT_EQ(state(), WorkerState::Ready);
  watch(1);
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_NE(worker()->reason.find("its KV events announced none"), std::string::npos)
      << worker()->reason;
  EXPECT_TRUE(metric_has("sightline_worker_unannounced_blocks{worker=\"w\"} 4"));
  tell_block_size(cache_of("w"), 16);
  EXPECT_EQ(state(), WorkerState::Ready);
  watch(1);
  EXPECT_TRUE(metric_has("sightline_worker_unannounced_blocks{worker=\"w\"} 0"));
  EXPECT_EQ(worker()->reason, "");
}

TEST_F(Work, ASleepingWorkerTakesNoRequestsAndSaysSo) {
  fleet_.apply_sleep(spec_, true);
  EXPECT_EQ(state(), WorkerState::Draining);
  EXPECT_NE(worker()->reason.find("sleeps"), std::string::npos) << worker()->reason;
  probe();
  EXPECT_EQ(state(), WorkerState::Draining);
  fleet_.apply_sleep(spec_, false);
  EXPECT_EQ(state(), WorkerState::Ready);
}

}  // namespace
}  // namespace sightline::fleet
