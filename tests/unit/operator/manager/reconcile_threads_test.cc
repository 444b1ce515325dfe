// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/reconcile_threads.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "tests/fakes/run_task.h"

namespace sightline::manager {
namespace {

using fakes::eventually;
using object::Key;
using Answer = client::Answer<std::optional<Duration>>;

void pass(Duration time) {
  const Instant until = system_clock().now() + time;
  while (system_clock().now() < until) std::this_thread::yield();
}

class WorkersTest : public testing::Test {
 protected:
  [[nodiscard]] bool counted(const std::string& line) const {
    return metrics_.scrape().find(line) != std::string::npos;
  }

  runtime::Metrics metrics_;
  queue::BlockingQueue queue_{"test", {}, system_clock(), metrics_};
};

TEST_F(WorkersTest, LookAgainAfterTheTimeThatWasAskedFor) {
  std::atomic<int> calls{0};
  Workers workers({.count = 2,
                   .reconcile = [&](const Key&) -> Answer {
                     return ++calls < 3 ? std::optional<Duration>(std::chrono::milliseconds(1))
                                        : std::optional<Duration>();
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "b"});
  EXPECT_TRUE(eventually([&] { return calls == 3; }));
  workers.stop();
  EXPECT_TRUE(counted(
      R"(controller_runtime_reconcile_total{controller="multimodalrouter",result="requeue_after"} 2)"));
  EXPECT_TRUE(counted(
      R"(controller_runtime_reconcile_total{controller="multimodalrouter",result="success"} 1)"));
  EXPECT_TRUE(counted(R"(controller_runtime_active_workers{controller="multimodalrouter"} 0)"));
}

TEST_F(WorkersTest, TryAFailureAgainAndOutliveAnException) {
  std::atomic<int> calls{0};
  Workers workers({.count = 1,
                   .reconcile = [&](const Key&) -> Answer {
                     ++calls;
                     if (calls == 1) throw std::runtime_error("out of luck");
                     if (calls == 2) return client::Failure{};
                     return std::optional<Duration>();
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "b"});
  EXPECT_TRUE(eventually([&] { return calls == 3; }));
  workers.stop();
  EXPECT_TRUE(
      counted(R"(controller_runtime_reconcile_panics_total{controller="multimodalrouter"} 1)"));
  EXPECT_TRUE(
      counted(R"(controller_runtime_reconcile_errors_total{controller="multimodalrouter"} 2)"));
}

TEST_F(WorkersTest, SlowFailingObjectDoesNotDelayOthers) {
  std::atomic<int> good{0};
  std::atomic<int> bad{0};
  Workers workers({.count = 1,
                   .reconcile = [&](const Key& key) -> Answer {
                     if (key.name == "good") {
                       ++good;
                       return std::optional<Duration>(std::chrono::milliseconds(1));
                     }
                     ++bad;
                     pass(std::chrono::milliseconds(50));
                     return client::Failure{};
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "bad"});
  queue_.add({"a", "good"});
  ASSERT_TRUE(eventually([&] { return bad == 3; }));
  workers.stop();
  EXPECT_GT(good, 100) << "four fifths of the time are for others";
}

TEST_F(WorkersTest, WaitAsLongAsTheServerAsksFor) {
  std::atomic<int> calls{0};
  Workers workers({.count = 1,
                   .reconcile = [&](const Key&) -> Answer {
                     ++calls;
                     client::Failure busy;
                     busy.retry_after = std::chrono::hours(1);
                     return busy;
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "b"});
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  pass(std::chrono::milliseconds(50));
  EXPECT_EQ(calls, 1);
}

TEST_F(WorkersTest, SayWhetherTheyHaveFinishedInTime) {
  std::atomic<bool> is_begun{false};
  std::atomic<bool> may_end{false};
  Workers workers({.count = 2,
                   .reconcile = [&](const Key&) -> Answer {
                     is_begun = true;
                     while (!may_end) std::this_thread::yield();
                     return std::optional<Duration>();
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "b"});
  ASSERT_TRUE(eventually([&] { return is_begun.load(); }));
  EXPECT_FALSE(workers.finish_within(std::chrono::milliseconds(20)));
  may_end = true;
  EXPECT_TRUE(workers.finish_within(fakes::kPatience));
  workers.stop();
}

TEST_F(WorkersTest, FinishWhatIsUnderWayBeforeTheyStop) {
  std::atomic<bool> is_begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> is_done{false};
  Workers workers({.count = 1,
                   .reconcile = [&](const Key&) -> Answer {
                     is_begun = true;
                     while (!may_end) std::this_thread::yield();
                     is_done = true;
                     return std::optional<Duration>();
                   }},
                  queue_, system_clock(), metrics_);
  queue_.add({"a", "b"});
  ASSERT_TRUE(eventually([&] { return is_begun.load(); }));
  may_end = true;
  workers.stop();
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace sightline::manager
