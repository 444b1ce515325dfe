// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/blocking_queue.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::queue {
namespace {

using object::Key;

const Key kA{"s", "a"};

TEST(BlockingQueue, TakeWaitsForWhatIsAddedAndForItsTime) {
  runtime::Metrics metrics;
  BlockingQueue queue("mmr", {}, system_clock(), metrics);
  std::stop_source stop;
  const Instant start = system_clock().now();
  std::jthread adder([&] { queue.add_after(kA, std::chrono::milliseconds(30)); });
  EXPECT_EQ(queue.take(stop.get_token()), kA);
  EXPECT_GE(system_clock().now() - start, std::chrono::milliseconds(30));
  queue.done(kA);
}

TEST(BlockingQueue, AStopEndsTheWait) {
  runtime::Metrics metrics;
  BlockingQueue queue("mmr", {}, system_clock(), metrics);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(queue.take(stop.get_token()), std::nullopt);
}

TEST(BlockingQueue, NoItemIsWorkedOnByTwoThreads) {
  runtime::Metrics metrics;
  BlockingQueue queue("mmr", {}, system_clock(), metrics);
  std::stop_source stop;
  constexpr int kItems = 5;
  std::array<std::atomic<int>, kItems> active{};
  std::atomic<int> taken{0};
  std::atomic<bool> is_shared{false};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        while (const auto item = queue.take(stop.get_token())) {
          auto& mine = active.at(static_cast<std::size_t>(std::stoi(item->name)));
          if (mine.fetch_add(1) != 0) is_shared = true;
          ++taken;
          mine.fetch_sub(1);
          queue.done(*item);
        }
      });
    }
    for (int i = 0; i < 2000; ++i) queue.add({"s", std::to_string(i % kItems)});
    while (queue.depth() > 0) std::this_thread::yield();
    stop.request_stop();
  }
  EXPECT_FALSE(is_shared);
  EXPECT_GE(taken, kItems);
}

TEST(BlockingQueue, CountsUnderTheNamesOfClientGo) {
  runtime::Metrics metrics;
  BlockingQueue queue("mmr", {}, system_clock(), metrics);
  std::stop_source stop;
  queue.add(kA);
  queue.add_rate_limited(kA);
  static_cast<void>(queue.take(stop.get_token()));
  queue.refresh_metrics();
  const std::string text = metrics.scrape();
  for (const char* line :
       {"workqueue_depth{name=\"mmr\",controller=\"mmr\",priority=\"\"} 0",
        "workqueue_adds_total{name=\"mmr\",controller=\"mmr\"} 1",
        "workqueue_retries_total{name=\"mmr\",controller=\"mmr\"} 1",
        "workqueue_queue_duration_seconds_count{name=\"mmr\",controller=\"mmr\"} 1",
        "workqueue_unfinished_work_seconds{name=\"mmr\",controller=\"mmr\"}"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace sightline::queue
