// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/deadlines.h"

#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/io_pool.h"

#include "tests/fakes/run_task.h"

namespace sightline {
namespace {

using fakes::run_task;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Deadlines, CallAfterTheTimeAndOnlyOnce) {
  IoPool pool({});
  int calls = 0;
  Duration waited{};
  run_task(pool, [&]() -> Task<void> {
    Gate passed;
    Gate later;
    Deadline deadline(pool.deadlines(0), [&] {
      ++calls;
      passed.open();
    });
    const auto begin = system_clock().now();
    deadline.set(milliseconds(30));
    co_await passed.wait();
    waited = system_clock().now() - begin;
    EXPECT_FALSE(deadline.is_set());
    Deadline end(pool.deadlines(0), [&] { later.open(); });
    end.set(milliseconds(60));
    co_await later.wait();
  });
  EXPECT_EQ(calls, 1);
  EXPECT_GE(waited, milliseconds(30));
}

TEST(Deadlines, CallInTheOrderOfTimeThoughSetInAnother) {
  IoPool pool({});
  std::vector<int> order;
  run_task(pool, [&]() -> Task<void> {
    Gate last;
    Deadline far(pool.deadlines(0), [&] { order.push_back(0); });
    far.set(hours(1));
    Deadline third(pool.deadlines(0), [&] {
      order.push_back(3);
      last.open();
    });
    third.set(milliseconds(120));
    Deadline second(pool.deadlines(0), [&] { order.push_back(2); });
    second.set(milliseconds(70));
    Deadline first(pool.deadlines(0), [&] { order.push_back(1); });
    first.set(milliseconds(20));
    Deadline cleared(pool.deadlines(0), [&] { order.push_back(9); });
    cleared.set(milliseconds(40));
    cleared.clear();
    co_await last.wait();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Deadlines, LetACallbackDestroyItsOwnAndOtherDeadlines) {
  IoPool pool({});
  int calls = 0;
  run_task(pool, [&]() -> Task<void> {
    Gate done;
    std::vector<std::unique_ptr<Deadline>> all;
    const auto drop_all = [&] {
      ++calls;
      all.clear();
      done.open();
    };
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Deadline>(pool.deadlines(0), drop_all));
      all.back()->set(milliseconds(1));
    }
    co_await done.wait();
    Gate later;
    Deadline end(pool.deadlines(0), [&] { later.open(); });
    end.set(milliseconds(50));
    co_await later.wait();
  });
  EXPECT_EQ(calls, 1);
}

TEST(Deadlines, CallAllThatPassedThoughEachRemovesAnEarlierOne) {
  constexpr int kCount = 100;
  IoPool pool({});
  int calls = 0;
  run_task(pool, [&]() -> Task<void> {
    Gate done;
    std::vector<std::unique_ptr<Deadline>> spare;
    std::vector<std::unique_ptr<Deadline>> all;
    const auto drop_one = [&] {
      if (!spare.empty()) spare.pop_back();
      if (++calls == kCount) done.open();
    };
    for (int i = 0; i < kCount; ++i) {
      spare.push_back(std::make_unique<Deadline>(pool.deadlines(0), [] {}));
    }
    for (int i = 0; i < kCount; ++i) {
      all.push_back(std::make_unique<Deadline>(pool.deadlines(0), drop_one));
    }
    for (const auto& deadline : all) deadline->set(milliseconds(1));
    co_await done.wait();
  });
  EXPECT_EQ(calls, kCount);
}

TEST(Deadlines, MayBeSetAgainFromTheirOwnCallback) {
  IoPool pool({});
  int calls = 0;
  run_task(pool, [&]() -> Task<void> {
    Gate done;
    std::optional<Deadline> deadline;
    deadline.emplace(pool.deadlines(0), [&] {
      if (++calls < 3) deadline->set(milliseconds(1));
      if (calls == 3) done.open();
    });
    deadline->set(milliseconds(1));
    co_await done.wait();
  });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace sightline
