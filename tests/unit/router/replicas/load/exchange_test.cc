// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Three routers share their load over a network that loses, repeats, delays and reorders messages,
// and is divided for a while. Routers are killed and started again.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/replicas/load/others_load.h"
#include "router/replicas/load/own_load.h"

namespace sightline::load {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

constexpr std::size_t kRouters = 3;
constexpr std::uint32_t kRanks = 6;
constexpr Duration kLatest = 2'500ms;  // the longest delay of a message
constexpr Duration kSilence = 3s;

fleet::RankName rank_name(std::uint32_t rank) {
  return {"worker-" + std::to_string(rank / 2), rank % 2};
}

// One run of a router.
struct Router {
  Router(std::uint64_t number, Instant begin, Rng& rng)
      : instance(number),
        begun_at(begin),
        // Small messages: snapshots have several parts.
        own(number, "r", {.message_bytes_max = kMessageBytesMin}),
        others(number, [&rng] { return rng.next(); }) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) cells.push_back(book.open(rank_name(rank)));
  }

  std::uint64_t instance;
  Instant begun_at;
  Instant now{};  // of the book's present change
  OwnLoad own;
  OthersLoad others;
  fleet::LoadBook book{{.observer = [this](const fleet::LoadChange& c) { own.take(c, now); },
                        .source_timeout = kSilence}};
  std::vector<std::shared_ptr<fleet::LoadCell>> cells;
  struct Request {
    std::uint32_t rank;
    fleet::BookedWork work;
  };
  std::vector<Request> requests;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed) {
    for (std::size_t i = 0; i < kRouters; ++i) start(i);
  }

  void step() {
    now_ += std::chrono::microseconds(rng_.below(5'000));
    if (!quiet_) act();
    deliver();
    for (std::size_t i = 0; i < kRouters; ++i) turn(i);
    check(rng_.below(kRouters));
  }
  void set_quiet(bool quiet) {
    quiet_ = quiet;
    if (quiet) parted_.fill(false);
  }
  [[nodiscard]] Instant now() const { return now_; }

  // Each router's view of each other router equals what that one has booked.
  void check_views() {
    for (std::size_t i = 0; i < kRouters; ++i) {
      for (std::size_t j = 0; j < kRouters; ++j) {
        if (i != j) check_view(*routers_[i], *routers_[j]);
      }
    }
  }
  // Routers that are gone do not count, and the books have the sum.
  void check_books() {
    for (const auto& router : routers_) {
      ASSERT_EQ(router->others.sources(now_).size(), kRouters - 1);
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        fleet::Load sum;
        for (const auto& one : routers_) sum += one->cells[rank]->own(now_);
        const fleet::Load read = router->cells[rank]->read(now_);
        ASSERT_EQ(read.in_flight, sum.in_flight);
        ASSERT_EQ(read.prefill_tokens, sum.prefill_tokens);
        ASSERT_EQ(read.blocks, sum.blocks);
        ASSERT_NEAR(read.recent_prefill_blocks, sum.recent_prefill_blocks,
                    0.01 + sum.recent_prefill_blocks / 1'000);
      }
    }
  }
  [[nodiscard]] std::array<std::uint64_t, kLeftAsideCount> left_aside() const {
    return left_aside_;
  }
  std::uint64_t gaps = 0;
  std::uint64_t silent = 0;
  std::uint64_t ended = 0;

 private:
  struct Packet {
    std::size_t to;
    std::string bytes;
  };

  void start(std::size_t i) {
    routers_[i] = std::make_unique<Router>(rng_.next() | 1U, now_, rng_);
  }

  void act() {
    const std::size_t i = rng_.below(kRouters);
    Router& router = *routers_[i];
    router.now = now_;
    const std::uint32_t dice = rng_.below(4'000);
    if (dice == 0) return end(i, false);
    if (dice == 1) return end(i, true);
    if (dice < 6) {
      parted_[i] = !parted_[i];
    } else if (dice == 6) {
      router.others.connected(now_);
    } else if (dice < 1'300) {
      const std::uint32_t rank = rng_.below(kRanks);
      // On a rank without prefill work, the rank is idle as soon as its requests have ended.
      const std::uint64_t prefill = rank % 2 == 0 ? 1 + rng_.below(1'000) : 0;
      const fleet::Booking booking{
          .prefill_tokens = prefill, .blocks = 1 + rng_.below(60), .block_size = 16};
      router.requests.push_back({rank, router.cells[rank]->reserve(booking, now_)});
      note(router, rank);
    } else if (!router.requests.empty()) {
      const std::size_t at = rng_.below(static_cast<std::uint32_t>(router.requests.size()));
      Router::Request& request = router.requests[at];
      const std::uint32_t rank = request.rank;
      if (dice < 2'300) {
        request.work.first_token();
      } else if (dice < 3'300) {
        std::swap(request, router.requests.back());
        router.requests.pop_back();
      }
      note(router, rank);
    }
  }

  // Its successor has another instance.
  void end(std::size_t i, bool says_so) {
    Router& router = *routers_[i];
    keep_statistics(router);
    dead_.emplace(router.instance, now_);
    router.requests.clear();
    if (says_so) send(i, router.own.farewell());
    start(i);
  }

  void keep_statistics(const Router& router) {
    const auto& statistics = router.others.statistics();
    for (std::size_t i = 0; i < kLeftAsideCount; ++i) left_aside_[i] += statistics.left_aside[i];
    gaps += statistics.gaps;
    silent += statistics.silent;
    ended += statistics.ended;
  }

  // The present value may be published.
  void note(const Router& router, std::uint32_t rank) {
    const fleet::Load load = router.cells[rank]->own(now_);
    truths_.emplace(router.instance, rank, load.in_flight, load.prefill_tokens, load.blocks);
  }

  void send(std::size_t from, const std::string& bytes) {
    for (std::size_t to = 0; to < kRouters; ++to) {
      const bool is_parted = from != to && (parted_[from] || parted_[to]);
      if (is_parted || (!quiet_ && rng_.below(100) < 5)) continue;
      const std::uint32_t copies = !quiet_ && rng_.below(100) < 5 ? 2 : 1;
      for (std::uint32_t copy = 0; copy < copies; ++copy) {
        network_.emplace(now_ + delay(), Packet{to, bytes});
      }
    }
  }

  Duration delay() {
    if (quiet_) return 200us;
    if (rng_.below(200) == 0) return std::chrono::milliseconds(rng_.below(2'500));
    return std::chrono::microseconds(rng_.below(rng_.below(4) == 0 ? 30'000 : 1'000));
  }

  void deliver() {
    while (!network_.empty() && network_.begin()->first <= now_) {
      const Packet packet = std::move(network_.begin()->second);
      network_.erase(network_.begin());
      Router& router = *routers_[packet.to];
      const auto message = decode(packet.bytes);
      ASSERT_TRUE(message.ok());
      if (const auto* told = std::get_if<LoadReport>(&*message)) router.others.hear(*told, now_);
      if (const auto* gone = std::get_if<Leave>(&*message)) router.others.hear(*gone, now_);
      if (const auto* ask = std::get_if<LoadAsk>(&*message)) router.own.asked(*ask);
      turn(packet.to);
    }
  }

  void turn(std::size_t i) {
    Router& router = *routers_[i];
    if (router.own.due() <= now_) {
      for (const auto& bytes : router.own.turn(now_)) send(i, bytes);
      EXPECT_GT(router.own.due(), now_);
    }
    if (router.others.due() > now_) return;
    const auto turn = router.others.turn(now_);
    EXPECT_GT(router.others.due(), now_);
    for (const LoadAsk& ask : turn.asks) send(i, encode(ask));
    for (const BookCall& call : turn.calls) {
      if (const auto* set = std::get_if<SetOthers>(&call)) {
        EXPECT_TRUE(router.book.set_others(set->source, set->told.rank, set->told.load, now_));
      } else if (const auto* heard = std::get_if<HearSource>(&call)) {
        router.book.hear(heard->source, now_);
      } else {
        router.book.forget(std::get<ForgetSource>(call).source);
      }
    }
  }

  // The rules that hold at any time.
  void check(std::size_t i) {
    const Router& router = *routers_[i];
    std::array<fleet::Load, kRanks> sums{};
    for (const auto& source : router.others.sources(now_)) {
      ASSERT_NE(source.instance, router.instance);
      const auto dead = dead_.find(source.instance);
      if (dead != dead_.end()) {
        ASSERT_GE(dead->second, router.begun_at) << "it was gone before we began";
        ASSERT_LT(now_ - dead->second, kSilence + kLatest + 5ms);
      }
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const auto told = router.others.told(source.instance, rank_name(rank));
        if (!told) continue;
        sums[rank] += *told;
        ASSERT_TRUE(truths_.contains(
            {source.instance, rank, told->in_flight, told->prefill_tokens, told->blocks}));
      }
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const fleet::Load own = router.cells[rank]->own(now_);
      const fleet::Load read = router.cells[rank]->read(now_);
      ASSERT_EQ(read.in_flight, own.in_flight + sums[rank].in_flight);
      ASSERT_EQ(read.prefill_tokens, own.prefill_tokens + sums[rank].prefill_tokens);
      ASSERT_EQ(read.blocks, own.blocks + sums[rank].blocks);
    }
  }

  void check_view(const Router& of, const Router& other) {
    const auto sources = of.others.sources(now_);
    ASSERT_TRUE(std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
      return source.instance == other.instance && source.whole;
    }));
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const fleet::Load truth = other.cells[rank]->own(now_);
      const fleet::Load told =
          of.others.told(other.instance, rank_name(rank)).value_or(fleet::Load{});
      ASSERT_EQ(told.in_flight, truth.in_flight);
      ASSERT_EQ(told.prefill_tokens, truth.prefill_tokens);
      ASSERT_EQ(told.blocks, truth.blocks);
    }
  }

  Rng rng_;
  Instant now_{1'000s};
  bool quiet_ = false;
  std::array<bool, kRouters> parted_{};
  std::array<std::unique_ptr<Router>, kRouters> routers_;
  std::multimap<Instant, Packet> network_;
  std::map<std::uint64_t, Instant> dead_;  // instance: since when
  // The instance, the rank, and what it had booked there at some time.
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>>
      truths_;
  std::array<std::uint64_t, kLeftAsideCount> left_aside_{};
};

void run_until(Simulation& world, Instant end) {
  while (world.now() < end && !::testing::Test::HasFatalFailure()) world.step();
}

TEST(LoadExchange, QuietMakesEachRouterCountTheOthersOnce) {
  constexpr int kRounds = 25;
  constexpr int kSteps = 8'000;
  Simulation world(20'261);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    for (int i = 0; i < kSteps && !HasFatalFailure(); ++i) world.step();
    world.set_quiet(true);
    const Instant quiet = world.now();
    // A snapshot each second, and a round of asking.
    run_until(world, quiet + 1'100ms);
    world.check_views();
    // Delayed messages, and routers that are gone.
    run_until(world, quiet + kLatest + kSilence + 10ms);
    world.check_views();
    world.check_books();
    if (HasFatalFailure()) return;
    world.set_quiet(false);
  }
  // The run had all that it is about.
  const auto left_aside = world.left_aside();
  for (const auto reason :
       {LeftAside::Own, LeftAside::Late, LeftAside::Stranger, LeftAside::Ended}) {
    EXPECT_GT(left_aside.at(static_cast<std::size_t>(reason)), 20U) << name_of(reason);
  }
  EXPECT_GT(world.gaps, 1'000U);
  EXPECT_GT(world.silent, 20U);
  EXPECT_GT(world.ended, 20U);
}

}  // namespace
}  // namespace sightline::load
