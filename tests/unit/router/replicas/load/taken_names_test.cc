// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/taken_names.h"

#include <array>
#include <optional>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::load {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using Again = TakenNames::Again;

constexpr Instant kStart{1'000s};
const ReservationName kName{.instance = "front-1", .number = 7, .attempt = 2};

std::vector<Takeover> read(const std::vector<std::string>& messages) {
  std::vector<Takeover> all;
  for (const std::string& bytes : messages) {
    const auto message = decode(bytes);
    EXPECT_TRUE(message.ok());
    all.push_back(std::get<Takeover>(*message));
  }
  return all;
}

// The names that it publishes now, as one message.
Takeover told(TakenNames& names, Again again, Instant now) {
  const auto all = read(names.tell(again, now));
  EXPECT_LE(all.size(), 1U);
  return all.empty() ? Takeover{} : all[0];
}

TEST(TakenNames, PublishesATakenReservationThatEndsElsewhere) {
  TakenNames a(1);
  TakenNames b(2);
  EXPECT_FALSE(a.has_news());
  a.take({kName}, kStart);
  EXPECT_TRUE(a.has_news());
  const Takeover message = told(a, Again::Nothing, kStart);
  ASSERT_EQ(message.names.size(), 1U);
  EXPECT_EQ(message.instance, 1U);
  EXPECT_EQ(b.hear(message), std::vector{kName});
  EXPECT_FALSE(a.has_news());
  EXPECT_TRUE(a.tell(Again::Nothing, kStart).empty());
  EXPECT_TRUE(a.hear(message).empty()) << "our own words";
}

TEST(TakenNames, RepeatsItWhileYoungAndLongerOnRequest) {
  TakenNames a(1);
  a.take({kName}, kStart);
  EXPECT_EQ(told(a, Again::Young, kStart).names.size(), 1U);
  EXPECT_EQ(told(a, Again::Young, kStart + 2'999ms).names.size(), 1U);
  EXPECT_TRUE(a.tell(Again::Young, kStart + 3s).empty());
  EXPECT_EQ(told(a, Again::ToAskers, kStart + 14'999ms).names.size(), 1U);
  EXPECT_TRUE(a.tell(Again::ToAskers, kStart + 15s).empty());
  EXPECT_EQ(a.size(), 1U);
  EXPECT_TRUE(a.tell(Again::Nothing, kStart + 60s).empty());
  EXPECT_EQ(a.size(), 0U);
}

TEST(TakenNames, LaterOfTwoTakersKeepsIt) {
  // Whichever has the higher instance.
  for (const std::uint64_t first_instance : {1U, 9U}) {
    TakenNames first(first_instance);
    TakenNames second(5);
    first.take({kName}, kStart);
    const Takeover earlier = told(first, Again::Nothing, kStart);
    EXPECT_EQ(second.hear(earlier).size(), 1U);
    second.take({kName}, kStart);
    const Takeover later = told(second, Again::Nothing, kStart);
    EXPECT_EQ(first.hear(later).size(), 1U);
    EXPECT_TRUE(second.hear(earlier).empty()) << "heard again, late";
    EXPECT_TRUE(first.tell(Again::Young, kStart).empty()) << "it has it no more";
    // And back.
    first.take({kName}, kStart);
    EXPECT_EQ(second.hear(told(first, Again::Nothing, kStart)).size(), 1U);
    EXPECT_TRUE(first.hear(later).empty());
  }
}

TEST(TakenNames, HigherAttemptIsAlwaysLater) {
  TakenNames a(1);
  TakenNames b(2);
  for (int i = 0; i < 5; ++i) a.take({kName}, kStart);
  ReservationName next = kName;
  ++next.attempt;
  b.take({next}, kStart);
  EXPECT_TRUE(b.hear(told(a, Again::Young, kStart)).empty());
  EXPECT_EQ(a.hear(told(b, Again::Young, kStart)), std::vector{next});
}

TEST(TakenNames, OfTwoThatTakeItAtOnceOneKeepsIt) {
  TakenNames a(1);
  TakenNames b(2);
  a.take({kName}, kStart);
  b.take({kName}, kStart);
  const Takeover of_a = told(a, Again::Nothing, kStart);
  const Takeover of_b = told(b, Again::Nothing, kStart);
  EXPECT_EQ(a.hear(of_b).size(), 1U);
  EXPECT_TRUE(b.hear(of_a).empty());
}

TEST(TakenNames, ManyNamesFillMessagesAndTheOldestAreDropped) {
  TakenNames a(1, {.names_max = 1'000, .message_bytes_max = 4'096});
  std::vector<ReservationName> names;
  for (std::uint64_t i = 0; i < 1'500; ++i) names.push_back({"front-1", i, 2});
  a.take(std::move(names), kStart);
  EXPECT_EQ(a.size(), 1'000U);
  EXPECT_EQ(a.statistics().forgotten, 500U);
  std::uint64_t next = 500;
  for (const std::string& bytes : a.tell(Again::Nothing, kStart)) {
    EXPECT_LE(bytes.size(), 4'096U);
    for (const Takeover& message : read({bytes})) {
      for (const TakenName& one : message.names) EXPECT_EQ(one.name.number, next++);
    }
  }
  EXPECT_EQ(next, 1'500U);
}

TEST(TakenNames, HostileTurnsDoNotOverflow) {
  TakenNames a(1);
  a.take({kName}, kStart);
  EXPECT_EQ(a.hear({.instance = 9, .names = {{kName, kTurnMax}}}).size(), 1U);
  a.take({kName}, kStart);
  a.take({kName}, kStart);
  EXPECT_EQ(told(a, Again::Nothing, kStart).names.at(0).turn, kTurnMax);
}

// Three routers take few names of one attempt, or the next, at random. Messages are lost, late or
// doubled.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed) {}

  void step(bool quiet) {
    now_ += std::chrono::milliseconds(rng_.below(20));
    if (!quiet && rng_.below(20) == 0) take();
    for (std::size_t i = 0; i < kRouters; ++i) {
      const bool is_snapshot = now_ >= next_snapshot_[i];
      if (is_snapshot) next_snapshot_[i] = now_ + 1s;
      for (const auto& bytes :
           routers_[i].tell(is_snapshot ? Again::Young : Again::Nothing, now_)) {
        send(i, bytes, quiet);
      }
    }
    deliver();
  }
  [[nodiscard]] Instant now() const { return now_; }
  void check_each_counts_once() const {
    for (std::uint64_t number = 0; number < kNumbers; ++number) {
      int holders = 0;
      for (const auto& held : held_) holders += held.contains(number) ? 1 : 0;
      ASSERT_LE(holders, 1) << number;
      // No message ended it everywhere.
      ASSERT_EQ(holders, was_taken_.at(number) ? 1 : 0) << number;
    }
  }

 private:
  static constexpr std::size_t kRouters = 3;
  static constexpr std::uint64_t kNumbers = 8;
  struct Packet {
    std::size_t to;
    std::string bytes;
  };

  void take() {
    const std::uint64_t number = rng_.below(kNumbers);
    const std::size_t router = rng_.below(kRouters);
    auto& attempt = attempts_[number];
    if (rng_.below(4) == 0) ++attempt;
    held_[router][number] = attempt;
    was_taken_[number] = true;
    routers_[router].take({{"f", number, attempt}}, now_);
  }
  void send(std::size_t from, const std::string& bytes, bool quiet) {
    for (std::size_t to = 0; to < kRouters; ++to) {
      if (!quiet && rng_.below(100) < 20) continue;
      for (std::uint32_t copy = 0; copy <= (rng_.below(10) == 0 ? 1U : 0U); ++copy) {
        network_.emplace(now_ + std::chrono::milliseconds(rng_.below(quiet ? 5 : 500)),
                         Packet{to, bytes});
      }
    }
    static_cast<void>(from);
  }
  void deliver() {
    while (!network_.empty() && network_.begin()->first <= now_) {
      const Packet packet = network_.begin()->second;
      network_.erase(network_.begin());
      for (const Takeover& message : read({packet.bytes})) {
        for (const auto& name : routers_[packet.to].hear(message)) {
          auto& held = held_[packet.to];
          const auto place = held.find(name.number);
          if (place != held.end() && place->second <= name.attempt) held.erase(place);
        }
      }
    }
  }

  Rng rng_;
  Instant now_ = kStart;
  std::array<TakenNames, kRouters> routers_{TakenNames(11), TakenNames(22), TakenNames(33)};
  std::array<Instant, kRouters> next_snapshot_{};
  std::array<std::map<std::uint64_t, std::uint32_t>, kRouters> held_;  // number: attempt
  std::array<std::uint32_t, kNumbers> attempts_{};
  std::array<bool, kNumbers> was_taken_{};
  std::multimap<Instant, Packet> network_;
};

TEST(TakenNames, AfterQuietEveryReservationCountsAtOneRouterExactly) {
  for (std::uint64_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation world(seed);
    for (int i = 0; i < 1'500; ++i) world.step(false);
    // In the quiet time the last takings are published again.
    const Instant quiet = world.now();
    while (world.now() < quiet + 2s) world.step(true);
    world.check_each_counts_once();
  }
}

}  // namespace
}  // namespace sightline::load
