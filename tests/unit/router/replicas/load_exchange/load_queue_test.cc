// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load_exchange/load_queue.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/clock.h"

namespace sightline::load_exchange {
namespace {

using fleet::LoadChange;

const fleet::RankName kRank{"w0", 0};
const fleet::Booking kBooking{.prefill_tokens = 32, .blocks = 2, .block_size = 16};

LoadChange change(LoadChange::Step step, bool had_first_token = false) {
  return {.rank = kRank,
          .id = fleet::BookingId{1},
          .step = step,
          .booking = kBooking,
          .had_first_token = had_first_token};
}

TEST(LoadQueue, ChangesOfARankAreOneSum) {
  LoadQueue queue;
  EXPECT_TRUE(queue.is_empty());
  for (int i = 0; i < 1'000; ++i) queue.put(change(LoadChange::Step::Reserved));
  for (int i = 0; i < 600; ++i) queue.put(change(LoadChange::Step::FirstToken));
  for (int i = 0; i < 500; ++i) queue.put(change(LoadChange::Step::Ended, true));
  for (int i = 0; i < 100; ++i) queue.put(change(LoadChange::Step::Ended));
  const auto deltas = queue.take().deltas;
  ASSERT_EQ(deltas.size(), 1U);
  const load::Delta& delta = deltas.at(kRank);
  EXPECT_EQ(delta.in_flight, 400);
  EXPECT_EQ(delta.prefill_tokens, 300 * 32);
  EXPECT_EQ(delta.blocks, 100 * 2);
  EXPECT_EQ(delta.prefill_blocks, 1'000 * 2);
  EXPECT_TRUE(queue.is_empty());
}

TEST(LoadQueue, OnlyWhatComesWhereNothingWasWakes) {
  LoadQueue queue;
  int woken = 0;
  queue.open([&] { ++woken; });
  queue.put(change(LoadChange::Step::Reserved));
  queue.put(change(LoadChange::Step::Reserved));
  queue.put_taken({{"f", 1, 2}});
  EXPECT_EQ(woken, 1);
  static_cast<void>(queue.take());
  queue.put_taken({});
  EXPECT_EQ(woken, 1);
  queue.put_taken({{"f", 1, 2}});
  EXPECT_EQ(woken, 2);
}

TEST(LoadQueue, ReservationsBeyondTheLimitAreLeftOutAndCounted) {
  LoadQueue queue;
  std::vector<load::ReservationName> names(LoadQueue::kTakenMax - 1, {"f", 1, 2});
  queue.put_taken(std::move(names));
  queue.put_taken({{"f", 2, 2}, {"f", 3, 2}, {"f", 4, 2}});
  const auto content = queue.take();
  EXPECT_EQ(content.taken.size(), LoadQueue::kTakenMax);
  EXPECT_EQ(content.taken.back().number, 2U);
  EXPECT_EQ(content.taken_left_out, 2U);
  EXPECT_EQ(queue.take().taken_left_out, 0U);
}

TEST(LoadQueue, ClosedQueueKeepsAndWakesNothing) {
  LoadQueue queue;
  int woken = 0;
  queue.open([&] { ++woken; });
  queue.put(change(LoadChange::Step::Reserved));
  queue.close();
  queue.put(change(LoadChange::Step::Ended));
  queue.put_taken({{"f", 1, 2}});
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(woken, 1);
}

TEST(LoadQueue, LosesNoChangeOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5'000;
  const auto queue = std::make_shared<LoadQueue>();
  fleet::LoadBook book({.observer = LoadQueue::observer_of(queue)});
  const auto cell = book.open(kRank);
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<fleet::BookedWork> kept;
      for (int i = 0; i < kRounds; ++i) {
        auto work = cell->reserve(kBooking, system_clock().now());
        work.first_token();
        if (i % 100 == 0) kept.push_back(std::move(work));
      }
      --running;
      while (running > -1) std::this_thread::yield();
    });
  }
  load::OwnLoad own(1, "r");
  const Instant now = system_clock().now();
  const auto take = [&] {
    // Totals are never below zero, which OwnLoad checks.
    for (const auto& [rank, delta] : queue->take().deltas) own.take(rank, delta, now);
  };
  while (running > 0) take();
  take();
  EXPECT_EQ(cell->own(now).in_flight, kThreads * kRounds / 100U);
  const auto message = load::decode(own.turn(now).at(0));
  ASSERT_TRUE(message.ok());
  const auto& told = std::get<load::LoadReport>(*message);
  ASSERT_EQ(told.ranks.size(), 1U);
  EXPECT_EQ(told.ranks[0].load.in_flight, kThreads * kRounds / 100U);
  EXPECT_EQ(told.ranks[0].load.blocks, kThreads * kRounds / 100U * 2);
  EXPECT_EQ(told.ranks[0].load.prefill_tokens, 0U);
  running = -1;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace sightline::load_exchange
