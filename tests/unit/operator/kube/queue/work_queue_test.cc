// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/work_queue.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::queue {
namespace {

using object::Key;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

const Key kA{"s", "a"};
const Key kB{"s", "b"};

std::string taken(WorkQueue& queue, Instant now) {
  const auto item = queue.take(now);
  return item ? item->item.name : "-";
}

TEST(WorkQueue, WhatIsAddedTwiceIsTakenOnce) {
  WorkQueue queue;
  queue.add(kA, kStart);
  queue.add(kB, kStart);
  queue.add(kA, kStart);
  EXPECT_EQ(queue.depth(), 2U);
  EXPECT_EQ(queue.added_total(), 2U);
  EXPECT_EQ(taken(queue, kStart), "a");
  EXPECT_EQ(taken(queue, kStart), "b");
  EXPECT_EQ(taken(queue, kStart), "-");
}

TEST(WorkQueue, ItemIsNotTakenAgainBeforeItIsDone) {
  WorkQueue queue;
  queue.add(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "a");
  queue.add(kA, kStart);
  queue.add(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "-");
  queue.done(kA, kStart + seconds(2));
  const auto again = queue.take(kStart + seconds(3));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->item, kA);
  EXPECT_EQ(again->waited, seconds(1));
  queue.done(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "-");
}

TEST(WorkQueue, OfSeveralTimesTheEarliestCounts) {
  WorkQueue queue;
  queue.add_at(kA, kStart, kStart + seconds(5));
  queue.add_at(kA, kStart, kStart + seconds(2));
  queue.add_at(kA, kStart, kStart + seconds(9));
  EXPECT_EQ(queue.next_ready(), kStart + seconds(2));
  EXPECT_EQ(queue.waiting(), 1U);
  EXPECT_EQ(taken(queue, kStart + milliseconds(1999)), "-");
  EXPECT_EQ(taken(queue, kStart + seconds(2)), "a");
  queue.done(kA, kStart + seconds(2));
  EXPECT_EQ(taken(queue, kStart + seconds(20)), "-");
  EXPECT_EQ(queue.next_ready(), std::nullopt);
}

TEST(WorkQueue, FailuresDoubleTheWaitUntilForget) {
  WorkQueue queue;
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 20; ++i) {
    queue.add_rate_limited(kA, kStart);
    waits.push_back((*queue.next_ready() - kStart) / milliseconds(1));
    EXPECT_EQ(taken(queue, *queue.next_ready()), "a");
    queue.done(kA, kStart);
  }
  EXPECT_EQ(waits.at(0), 5);
  EXPECT_EQ(waits.at(1), 10);
  EXPECT_EQ(waits.at(10), 5120);
  EXPECT_EQ(waits.at(19), 30'000);
  queue.forget(kA);
  queue.add_rate_limited(kA, kStart);
  EXPECT_EQ(*queue.next_ready() - kStart, milliseconds(5));
}

TEST(WorkQueue, AChangeEndsALongWait) {
  WorkQueue queue;
  for (int i = 0; i < 20; ++i) queue.add_rate_limited(kA, kStart);
  queue.add_changed(kA, kStart + seconds(3));
  EXPECT_EQ(taken(queue, kStart + seconds(3)), "a");
  queue.done(kA, kStart + seconds(3));
  queue.add_changed(kB, kStart);
  EXPECT_EQ(taken(queue, kStart), "b") << "one that never failed waits for nothing";
}

enum class Changes { BeforeWork, DuringWork };

// How often an item that always fails is tried within 100 s, if it changes before or during the
// work.
int tries_of_failing(WorkQueue& queue, Changes changes) {
  int tries = 0;
  for (Instant now = kStart; now < kStart + seconds(100); now += milliseconds(10)) {
    if (changes == Changes::BeforeWork) queue.add_changed(kA, now);
    if (!queue.take(now)) continue;
    ++tries;
    if (changes == Changes::DuringWork) queue.add_changed(kA, now);
    queue.add_rate_limited(kA, now);
    queue.done(kA, now);
  }
  return tries;
}

TEST(WorkQueue, SelfChangingFailuresRetryAtMostTwiceASecond) {
  WorkQueue queue;
  for (int i = 0; i < 20; ++i) queue.add_rate_limited(kA, kStart);
  const int tries = tries_of_failing(queue, Changes::BeforeWork);
  EXPECT_GT(tries, 100);
  EXPECT_LE(tries, 200);
}

TEST(WorkQueue, ChangeDuringFailingWorkDoesNotRetryImmediately) {
  WorkQueue queue;
  queue.add(kA, kStart);
  const int tries = tries_of_failing(queue, Changes::DuringWork);
  EXPECT_GT(tries, 100);
  EXPECT_LE(tries, 200);
}

TEST(WorkQueue, AChangeDuringWorkThatSucceedsHasItTakenAgain) {
  WorkQueue queue;
  queue.add(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "a");
  queue.add_changed(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "-") << "it is worked on";
  queue.forget(kA);
  queue.done(kA, kStart);
  EXPECT_EQ(taken(queue, kStart), "a");
}

TEST(WorkQueue, FailureWaitsAtLeastTheGivenTime) {
  WorkQueue queue;
  queue.add_rate_limited(kA, kStart, std::chrono::seconds(7));
  EXPECT_EQ(queue.next_ready(), kStart + std::chrono::seconds(7));
}

TEST(WorkQueue, FailuresOfAllItemsTogetherAreSlowedDown) {
  WorkQueue queue;
  for (int i = 0; i < 150; ++i) queue.add_rate_limited({"s", std::to_string(i)}, kStart);
  int ready = 0;
  while (queue.take(kStart + seconds(1))) ++ready;
  EXPECT_EQ(ready, 110);
}

TEST(WorkQueue, ReportsTheWorkUnderWay) {
  WorkQueue queue;
  queue.add(kA, kStart);
  queue.add(kB, kStart);
  static_cast<void>(queue.take(kStart));
  static_cast<void>(queue.take(kStart + seconds(2)));
  const auto unfinished = queue.unfinished(kStart + seconds(5));
  EXPECT_EQ(unfinished.total, seconds(8));
  EXPECT_EQ(unfinished.longest, seconds(5));
}

// The same queue in the simplest form: lists that are searched.
class NaiveQueue {
 public:
  void add(const Key& item) {
    if (has(dirty_, item)) return;
    dirty_.push_back(item);
    if (!has(processing_, item)) order_.push_back(item);
  }
  void add_at(const Key& item, Instant at) {
    for (auto& [time, waiting] : later_) {
      if (waiting == item) {
        time = std::min(time, at);
        return;
      }
    }
    later_.emplace_back(at, item);
  }
  std::optional<Key> take(Instant now) {
    std::stable_sort(later_.begin(), later_.end());
    while (!later_.empty() && later_.front().first <= now) {
      add(later_.front().second);
      later_.erase(later_.begin());
    }
    if (order_.empty()) return std::nullopt;
    const Key item = order_.front();
    order_.erase(order_.begin());
    std::erase(dirty_, item);
    processing_.push_back(item);
    return item;
  }
  void done(const Key& item) {
    if (std::erase(processing_, item) > 0 && has(dirty_, item)) order_.push_back(item);
  }
  [[nodiscard]] std::size_t depth() const { return order_.size(); }
  [[nodiscard]] const std::vector<Key>& processing() const { return processing_; }

 private:
  static bool has(const std::vector<Key>& items, const Key& item) {
    return std::find(items.begin(), items.end(), item) != items.end();
  }
  std::vector<Key> order_, dirty_, processing_;
  std::vector<std::pair<Instant, Key>> later_;
};

void run_both(std::uint64_t seed) {
  Rng rng(seed);
  WorkQueue queue;
  NaiveQueue naive;
  Instant now = kStart;
  for (int step = 0; step < 400; ++step) {
    const Key item{"s", std::string(1, static_cast<char>('a' + rng.below(6)))};
    now += milliseconds(rng.below(20));
    switch (rng.below(5)) {
      case 0:
        queue.add(item, now);
        naive.add(item);
        break;
      case 1: {
        const Instant at = now + milliseconds(1 + rng.below(50));
        queue.add_at(item, now, at);
        naive.add_at(item, at);
        break;
      }
      case 2: {
        const auto taken = queue.take(now);
        ASSERT_EQ(taken ? std::optional(taken->item) : std::nullopt, naive.take(now)) << step;
        break;
      }
      case 3:
        queue.done(item, now);
        naive.done(item);
        break;
      default:
        if (!naive.processing().empty()) {
          const Key under_way = naive.processing().front();
          queue.done(under_way, now);
          naive.done(under_way);
        }
    }
    ASSERT_EQ(queue.depth(), naive.depth()) << step;
  }
}

TEST(WorkQueue, DoesWhatANaiveQueueDoes) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    run_both(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace sightline::queue
