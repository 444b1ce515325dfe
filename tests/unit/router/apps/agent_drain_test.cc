// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/agent_drain.h"

#include <future>
#include <memory>

#include <gtest/gtest.h>

#include "common/runtime/metrics.h"

namespace sightline::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kQuiet{150};
constexpr seconds kPatience{20};

class AgentDrainTest : public testing::Test {
 protected:
  AgentDrainTest() {
    fleet_.set_workers({spec_});
    fleet_.apply_probe(spec_, {.health = Done{}});
  }

  void run_requests(std::uint32_t running, std::uint32_t waiting) {
    fleet_.apply_load(spec_, {.running = running, .waiting = waiting});
  }
  std::future<admin_port::AdminResponse> call(const std::string& timeout) {
    admin_port::AdminRequest request;
    if (!timeout.empty()) request.query["timeout"] = {timeout};
    auto answer = std::make_shared<std::promise<admin_port::AdminResponse>>();
    auto future = answer->get_future();
    drain_.run(request,
               [answer](const admin_port::AdminResponse& given) { answer->set_value(given); });
    return future;
  }
  static admin_port::AdminResponse wait(std::future<admin_port::AdminResponse> answer) {
    EXPECT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    return answer.get();
  }

  const contract::WorkerSpec spec_ = *contract::parse_worker("name=w,url=http://h:1");
  runtime::Metrics metrics_;
  fleet::Fleet fleet_{{}, {}, metrics_, system_clock()};
  int told_ = 0;
  AgentDrain drain_{{.quiet = kQuiet}, fleet_, [this] { ++told_; }, system_clock()};
};

TEST_F(AgentDrainTest, AnswersOnceNothingHasRunForAWhile) {
  run_requests(0, 0);
  const Instant before = system_clock().now();
  const auto answer = wait(call(""));
  EXPECT_EQ(answer.status, 200);
  EXPECT_GE(system_clock().now() - before, kQuiet);
  EXPECT_EQ(told_, 1);
  EXPECT_NE(answer.body.find(R"("drained":true)"), std::string::npos) << answer.body;
}

TEST_F(AgentDrainTest, WaitsForWhatRunsAndForWhatWaits) {
  run_requests(1, 0);
  auto answer = call("3600");
  EXPECT_EQ(answer.wait_for(2 * kQuiet), std::future_status::timeout);
  run_requests(0, 1);
  EXPECT_EQ(answer.wait_for(2 * kQuiet), std::future_status::timeout);
  run_requests(0, 0);
  EXPECT_EQ(wait(std::move(answer)).status, 200);
}

TEST_F(AgentDrainTest, SaysWhatStillRunsWhenTheTimeIsOver) {
  run_requests(3, 4);
  const auto answer = wait(call("1"));
  EXPECT_EQ(answer.status, 504);
  EXPECT_NE(answer.body.find(R"("name":"w")"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("running":3,"waiting":4)"), std::string::npos) << answer.body;
}

TEST_F(AgentDrainTest, RefusesTimesThatAreNone) {
  for (const char* text : {"-1", "1.5", "soon", "3601", "99999999999999999999", ""}) {
    EXPECT_FALSE(parse_drain_timeout(text).ok()) << text;
  }
  EXPECT_EQ(wait(call("soon")).status, 400);
  EXPECT_EQ(told_, 0) << "nothing was drained";
  EXPECT_EQ(*parse_drain_timeout("0"), Duration(0));
}

TEST_F(AgentDrainTest, RefusesMoreCallsThanWaitAtATime) {
  run_requests(1, 0);
  std::vector<std::future<admin_port::AdminResponse>> waiting;
  for (std::size_t i = 0; i < kDrainsMax; ++i) waiting.push_back(call("3600"));
  EXPECT_EQ(wait(call("3600")).status, 503);
  drain_.stop();
  for (auto& answer : waiting) EXPECT_EQ(wait(std::move(answer)).status, 503);
}

TEST_F(AgentDrainTest, AWorkerThatDoesNotAnswerRunsNothing) {
  run_requests(5, 0);
  fleet::Probe refused;
  refused.health = worker_error(ErrorCode::Unavailable, "connection refused", true);
  refused.refused = true;
  fleet_.apply_probe(spec_, refused);
  ASSERT_EQ(fleet_.snapshot()->workers.front()->state, fleet::WorkerState::Down);
  EXPECT_EQ(wait(call("60")).status, 200);
}

}  // namespace
}  // namespace sightline::apps
