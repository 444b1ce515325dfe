// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/io_pool.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <gtest/gtest.h>

#include "common/base/out_of_memory.h"
#include "common/base/result.h"

#include "tests/fakes/run_task.h"

namespace sightline {
namespace {

using fakes::run_task;

TEST(IoPool, GivesEachThreadItsOwnNumber) {
  IoPool pool({.io_threads = 3, .compute_threads = 1});
  ASSERT_EQ(pool.size(), 3U);
  for (std::size_t i = 0; i < pool.size(); ++i) {
    std::size_t seen = 99;
    run_task(
        pool,
        [&]() -> Task<void> {
          seen = pool.index_here();
          co_return;
        },
        i);
    EXPECT_EQ(seen, i);
  }
}

TEST(IoPool, RunsComputeWorkElsewhereAndResumesOnTheCallersThread) {
  IoPool pool({.io_threads = 2, .compute_threads = 2});
  std::thread::id before;
  std::thread::id during;
  std::thread::id after;
  std::unique_ptr<int> answer;
  run_task(
      pool,
      [&]() -> Task<void> {
        before = std::this_thread::get_id();
        auto work = [&during] {
          during = std::this_thread::get_id();
          return std::make_unique<int>(42);
        };
        const Effort effort;
        answer = co_await run_on_compute(pool, effort, std::move(work));
        after = std::this_thread::get_id();
      },
      1);
  EXPECT_EQ(before, after);
  EXPECT_NE(before, during);
  EXPECT_EQ(*answer, 42);
}

TEST(IoPool, RunsComputeWorkThatGivesNothing) {
  IoPool pool({});
  bool ran = false;
  run_task(pool, [&]() -> Task<void> {
    auto work = [&ran] { ran = true; };
    const Effort effort;
    co_await run_on_compute(pool, effort, std::move(work));
  });
  EXPECT_TRUE(ran);
}

// Work that runs until it is released, on as many threads as it gets.
class Hold {
 public:
  ~Hold() { release(); }
  void operator()() {
    ++running_;
    released_.get_future().wait();
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }
  [[nodiscard]] int running() const { return running_; }

 private:
  std::promise<void> released_;
  bool is_released_ = false;
  std::atomic<int> running_ = 0;
};

// Runs a step and stores its result. With `hold`, the step occupies its thread.
Task<void> note_result(IoPool& pool, Effort effort, Hold* hold,
                       std::promise<Result<Done>>& result) {
  auto work = [hold]() -> Result<Done> {
    if (hold != nullptr) (*hold)();
    return Done{};
  };
  auto done = co_await offload(pool, effort.weight, effort.left, std::move(work));
  result.set_value(std::move(done));
}

constexpr std::size_t kLarge = 48U << 20U;

// A pool of two compute threads, one of which a large step holds until it is released.
struct HeldPool {
  HeldPool() {
    begin({kLarge}, held, &hold);
    EXPECT_TRUE(fakes::eventually([this] { return hold.running() == 1; }));
  }
  ~HeldPool() { hold.release(); }

  void begin(Effort effort, std::promise<Result<Done>>& result, Hold* holds = nullptr) {
    spawn(home(), note_result(pool, std::move(effort), holds, result));
  }
  asio::io_context::executor_type home() { return pool.context(0).get_executor(); }

  Hold hold;
  std::promise<Result<Done>> held;
  IoPool pool{{.io_threads = 1, .compute_threads = 2}};
};

TEST(IoPool, ASmallStepDoesNotWaitForLargeOnes) {
  HeldPool held;
  std::promise<Result<Done>> large;
  std::promise<Result<Done>> small;
  held.begin({kLarge}, large);
  held.begin({kInlineWeightMax + 1}, small);
  EXPECT_TRUE(small.get_future().get().ok());
  auto waits = large.get_future();
  EXPECT_EQ(waits.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  held.hold.release();
  EXPECT_TRUE(waits.get().ok());
  EXPECT_TRUE(held.held.get_future().get().ok());
}

TEST(IoPool, StepOfALeavingClientRunsFirst) {
  HeldPool held;
  std::promise<Result<Done>> left;
  std::stop_source leave;
  held.begin({kLarge, leave.get_token()}, left);
  asio::post(held.home(), [leave]() mutable { leave.request_stop(); });
  const auto result = left.get_future().get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Cancelled);
  held.hold.release();
  EXPECT_TRUE(held.held.get_future().get().ok());
}

TEST(IoPool, EndsWhileStepsWait) {
  std::promise<Result<Done>> waiting;
  std::stop_source leave;
  {
    HeldPool held;
    held.begin({kLarge, leave.get_token()}, waiting);
  }
  leave.request_stop();
}

struct Tell {
  bool* gone;
  explicit Tell(bool* flag) : gone(flag) {}
  ~Tell() { *gone = true; }
  Tell(const Tell&) = delete;
  Tell& operator=(const Tell&) = delete;
};

Task<void> wait_for_ever(Gate& gate, bool* gone, std::promise<void>& waiting) {
  const Tell tell(gone);
  waiting.set_value();
  co_await gate.wait();
}

void find_no_memory() { std::rethrow_exception(std::make_exception_ptr(std::bad_alloc())); }

TEST(IoPool, FailedAllocationEndsOnlyItsCaller) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  const std::uint64_t before = allocation_failures();
  std::promise<bool> caught;
  auto task = [&]() -> Task<void> {
    bool was_caught = false;
    try {
      auto work = [] { find_no_memory(); };
      const Effort effort;
      co_await run_on_compute(pool, effort, std::move(work));
    } catch (const std::bad_alloc&) {
      was_caught = true;
    }
    caught.set_value(was_caught);
  };
  spawn(pool.context(0).get_executor(), task());
  EXPECT_TRUE(caught.get_future().get());

  auto alone = []() -> Task<void> {
    find_no_memory();
    co_return;
  };
  spawn(pool.context(0).get_executor(), alone());
  asio::post(pool.context(0), [] { find_no_memory(); });
  // The thread continues with the next work.
  while (allocation_failures() < before + 2) {
    run_task(pool, []() -> Task<void> { co_return; });
  }
  EXPECT_EQ(allocation_failures(), before + 2);
}

TEST(IoPool, DestroysSuspendedCoroutinesAtItsEnd) {
  bool gone = false;
  {
    IoPool pool({});
    auto gate = std::make_unique<Gate>();
    std::promise<void> waiting;
    spawn(pool.context(0).get_executor(), wait_for_ever(*gate, &gone, waiting));
    waiting.get_future().wait();
    pool.stop();
    EXPECT_FALSE(gone);
  }
  EXPECT_TRUE(gone);
}

TEST(Gate, OpenGatePassesAndOpeningResumesTheWaiter) {
  IoPool pool({});
  std::vector<int> order;
  run_task(pool, [&]() -> Task<void> {
    Gate gate;
    gate.open();
    co_await gate.wait();
    order.push_back(1);
    gate.close();
    const auto opener = [&] {
      order.push_back(2);
      gate.open();
      order.push_back(4);
    };
    asio::post(pool.context(0), opener);
    co_await gate.wait();
    order.push_back(3);
    // Let the opener return before the gate is destroyed.
    Gate returned;
    asio::post(pool.context(0), [&returned] { returned.open(); });
    co_await returned.wait();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace sightline
