// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/holdings.h"

#include <gtest/gtest.h>

namespace sightline::remote_selector {
namespace {

using std::chrono::seconds;

// Two routers.
constexpr std::uint64_t kA = 1;
constexpr std::uint64_t kB = 2;

class HoldingsTest : public testing::Test {
 protected:
  std::uint64_t booked(std::uint64_t router, const std::string& worker = "w") {
    const std::uint64_t number = holdings.begin();
    holdings.book(number, {.router = router, .attempt = 0},
                  {.worker = worker, .rank = std::nullopt, .booking = {.prefill_tokens = 5}});
    return number;
  }
  std::vector<std::uint64_t> listed(std::uint64_t router) const {
    std::vector<std::uint64_t> numbers;
    for (const auto& part : holdings.list_for(router)) {
      for (const auto& held : part.open) numbers.push_back(held.number);
    }
    return numbers;
  }

  Instant now = Instant{} + seconds(100);
  Holdings holdings{"f", {.notes_max = 3, .note_age_max = seconds(15), .part_max = 2}};
};

TEST_F(HoldingsTest, ListsBookedAndOpenReservationsOfTheRouter) {
  const auto first = booked(kA);
  const auto second = booked(kB);
  const auto third = holdings.begin();
  EXPECT_EQ(listed(kA), (std::vector{first, third}));
  EXPECT_EQ(listed(kB), (std::vector{second, third}));
  EXPECT_FALSE(holdings.list_for(kA)[0].open[1].is_booked);
  holdings.abandon(third);
  EXPECT_EQ(listed(kA), std::vector{first});
}

TEST_F(HoldingsTest, PartsCoverAllNumbersWithoutAGap) {
  for (int i = 0; i < 5; ++i) booked(kA);
  const auto parts = holdings.list_for(kA);
  ASSERT_EQ(parts.size(), 3U);
  std::uint64_t next = 0;
  for (const auto& part : parts) {
    EXPECT_EQ(part.from, next);
    next = part.up_to + 1;
  }
  EXPECT_EQ(next, 6U);
  EXPECT_EQ(Holdings("g").list_for(kA).size(), 1U) << "an empty list ends what is left";
}

TEST_F(HoldingsTest, NotesEventsForTheRouterThatBooked) {
  const auto number = booked(kA);
  EXPECT_EQ(holdings.first_token(number, now), kA);
  EXPECT_EQ(holdings.first_token(number, now), 0U) << "once";
  EXPECT_TRUE(holdings.list_for(kA)[0].open[0].work.is_decoding);
  EXPECT_EQ(holdings.end(number, {}, now), kA);
  EXPECT_EQ(holdings.end(number, {}, now), 0U);
  EXPECT_FALSE(holdings.has_notes(kB));
  const auto notes = holdings.take_notes(kA, 10, now);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_FALSE(notes[0].note.ending);
  EXPECT_TRUE(notes[1].note.ending);
  EXPECT_EQ(holdings.open(), 0U);
}

TEST_F(HoldingsTest, MovesReservationsOfSilentRouterAsLaterAttempt) {
  const auto moves = booked(kA);
  const auto stays = booked(kB);
  EXPECT_EQ(holdings.move([](std::uint64_t router) { return router == kB; }, kB), 1U);
  const auto list = holdings.list_for(kB);
  ASSERT_EQ(listed(kB), (std::vector{moves, stays}));
  EXPECT_EQ(list[0].open[0].attempt, 1U);
  EXPECT_EQ(list[0].open[1].attempt, 0U);
  EXPECT_TRUE(listed(kA).empty());
}

TEST_F(HoldingsTest, NotesKeepTheirOrderLimitAndAge) {
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.push_back(booked(kA));
  for (const auto number : numbers) holdings.end(number, {}, now);
  EXPECT_EQ(holdings.dropped(), 1U);
  auto notes = holdings.take_notes(kA, 2, now);
  ASSERT_EQ(notes.size(), 2U);
  holdings.put_back(kA, std::move(notes));
  notes = holdings.take_notes(kA, 10, now);
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[0].note.number, numbers[0]);
  EXPECT_EQ(notes[2].note.number, numbers[2]);
  holdings.end(booked(kA), {}, now);
  EXPECT_TRUE(holdings.take_notes(kA, 10, now + seconds(15)).empty());
  EXPECT_EQ(holdings.dropped(), 2U);
  holdings.end(booked(kA), {}, now);
  holdings.drop_notes([](std::uint64_t) { return false; });
  EXPECT_FALSE(holdings.has_notes(kA));
  EXPECT_EQ(holdings.dropped(), 3U);
}

TEST_F(HoldingsTest, DropsOldNotesOfSilentRouter) {
  for (int i = 0; i < 3; ++i) holdings.end(booked(kA), {}, now);
  auto notes = holdings.take_notes(kA, 10, now + seconds(10));
  holdings.put_back(kA, std::move(notes));
  holdings.drop_old_notes(now + seconds(14));
  EXPECT_TRUE(holdings.has_notes(kA));
  holdings.drop_old_notes(now + seconds(15));
  EXPECT_FALSE(holdings.has_notes(kA));
  EXPECT_EQ(holdings.dropped(), 3U);
  holdings.end(booked(kB), {}, now + seconds(15));
  EXPECT_TRUE(holdings.has_notes(kB));
}

TEST_F(HoldingsTest, NamesEachLiveWorkerOnce) {
  const auto number = booked(kA, "busy");
  booked(kA, "silent");
  holdings.life(number)->raise();
  EXPECT_EQ(holdings.take_alive(), std::vector<std::string>{"busy"});
  EXPECT_TRUE(holdings.take_alive().empty());
}

}  // namespace
}  // namespace sightline::remote_selector
