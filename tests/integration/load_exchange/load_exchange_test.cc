// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load_exchange/load_exchange.h"

#include <algorithm>
#include <barrier>
#include <iostream>
#include <map>

#include <gtest/gtest.h>
#include <poll.h>

#include "router/front/leases/lease_book.h"
#include "tests/integration/load_exchange/routers.h"

namespace sightline::load_exchange {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using test::eventually;
using test::NatsServer;

constexpr std::string_view kScope = "default/default";
const fleet::Booking kBooking{.prefill_tokens = 160, .blocks = 10, .block_size = 16};

using Routers = std::vector<std::unique_ptr<Router>>;

// Each router counts what every router has booked, once.
bool all_agree(const Routers& routers) {
  return eventually([&] {
    fleet::Load sum;
    for (const auto& router : routers) sum += router->own();
    return std::all_of(routers.begin(), routers.end(),
                       [&](const auto& router) { return router->read() == sum; });
  });
}

bool all_know_all(const Routers& routers) {
  return std::all_of(routers.begin(), routers.end(),
                     [&](const auto& router) { return router->knows(routers.size() - 1); });
}

bool nobody_counts_anything(const Routers& routers) {
  return eventually([&] {
    return std::all_of(routers.begin(), routers.end(),
                       [](const auto& router) { return router->read() == fleet::Load{}; });
  });
}

// Runs a thread of requests for each router until `during` returns. What they have booked stays.
template <class During>
void under_load(Routers& routers, std::vector<Requests>& requests, During during) {
  std::vector<WorkerThread> threads;
  for (std::size_t i = 0; i < routers.size(); ++i) {
    threads.emplace_back("requests", [&, i](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (int step = 0; step < 20; ++step) requests[i].step(*routers[i]);
        poll(nullptr, 0, 1);
      }
    });
  }
  during();
}

std::vector<Requests> requests_of(std::size_t routers) {
  std::vector<Requests> requests;
  for (std::size_t i = 0; i < routers; ++i) requests.emplace_back(1'000 + i);
  return requests;
}

// The first router's requests continue meanwhile.
bool more_steps(const std::vector<Requests>& requests) {
  constexpr std::uint64_t kMore = 3'000;
  const std::uint64_t before = requests[0].steps();
  return eventually([&] { return requests[0].steps() >= before + kMore; });
}

Duration time_until(const std::function<bool()>& condition) {
  const Instant begin = system_clock().now();
  EXPECT_TRUE(eventually(condition));
  return system_clock().now() - begin;
}

double ms_of(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

TEST(LoadExchange, ABookingAndItsEndCountAtOtherRouters) {
  const NatsServer server;
  Routers routers;
  for (int i = 0; i < 3; ++i) {
    routers.push_back(std::make_unique<Router>(server, std::string(kScope)));
  }
  ASSERT_TRUE(all_know_all(routers));
  auto work = routers[0]->cells[2]->reserve(kBooking, system_clock().now());
  for (const auto& router : routers) {
    EXPECT_TRUE(eventually(
        [&] { return router->cells[2]->read(system_clock().now()).prefill_tokens == 160; }));
  }
  work.first_token();
  EXPECT_TRUE(eventually([&] { return routers[2]->read().blocks == 10; }));
  EXPECT_EQ(routers[2]->read().prefill_tokens, 0U);
  work.release();
  EXPECT_TRUE(nobody_counts_anything(routers));
  EXPECT_EQ(routers[1]->own(), fleet::Load{});
  EXPECT_EQ(routers[1]->value("load_sources"), 2);
  EXPECT_GT(routers[1]->value(R"(load_messages_total{direction="in"})"), 0);
  EXPECT_GT(routers[1]->value(R"(load_snapshots_total{direction="out"})"), 0);
}

TEST(LoadExchange, RoutersAgreeAfterAServerRestartUnderLoad) {
  NatsServer server;
  Routers routers;
  for (int i = 0; i < 3; ++i) {
    routers.push_back(std::make_unique<Router>(server, std::string(kScope)));
  }
  auto requests = requests_of(3);
  ASSERT_TRUE(all_know_all(routers));
  under_load(routers, requests, [&] {
    for (int round = 0; round < 3; ++round) {
      EXPECT_TRUE(more_steps(requests));
      server.kill();
      EXPECT_TRUE(more_steps(requests));
      server.start();
      EXPECT_TRUE(all_know_all(routers));
    }
    // Away for so long that no router counts another.
    server.kill();
    for (const auto& router : routers) EXPECT_TRUE(router->knows(0));
    server.start();
    EXPECT_TRUE(all_know_all(routers));
  });
  EXPECT_TRUE(all_agree(routers));
  for (auto& one : requests) one.end_all();
  EXPECT_TRUE(nobody_counts_anything(routers));
  EXPECT_GE(routers[0]->value(R"(load_sources_gone_total{reason="silent"})"), 2);
}

TEST(LoadExchange, RoutersAgreeDespiteLostLateAndReorderedMessages) {
  const NatsServer server;
  Tap tap(server, 3, 20'262);
  ASSERT_TRUE(tap.is_connected());
  Routers routers;
  for (std::size_t i = 0; i < 3; ++i) {
    routers.push_back(std::make_unique<Router>(server, Tap::scope(i)));
  }
  auto requests = requests_of(3);
  ASSERT_TRUE(all_know_all(routers));
  under_load(routers, requests, [&] {
    tap.set_faults({.lost_percent = 10, .twice_percent = 10, .late_ms_max = 40});
    EXPECT_TRUE(eventually([&] { return tap.lost() > 300 && tap.twice() > 300; }));
  });
  tap.set_faults({});
  EXPECT_TRUE(all_agree(routers));
  for (auto& one : requests) one.end_all();
  EXPECT_TRUE(nobody_counts_anything(routers));
  double gaps = 0;
  double late = 0;
  for (const auto& router : routers) {
    gaps += router->value(R"(load_gaps_total{seen_by="sequence"})");
    late += router->value(R"(load_left_aside_total{reason="late"})");
  }
  EXPECT_GT(gaps, 50);
  EXPECT_GT(late, 50);
  std::cout << "tap: lost " << tap.lost() << ", twice " << tap.twice() << ", late " << tap.late()
            << "; gaps seen " << gaps << ", late ones left aside " << late << '\n';
}

TEST(LoadExchange, ASilentRouterCountsForThreeSeconds) {
  const NatsServer server;
  Tap tap(server, 2, 1);
  ASSERT_TRUE(tap.is_connected());
  Routers routers;
  for (std::size_t i = 0; i < 2; ++i) {
    routers.push_back(std::make_unique<Router>(server, Tap::scope(i)));
  }
  ASSERT_TRUE(all_know_all(routers));
  const auto work = routers[1]->cells[0]->reserve(kBooking, system_clock().now());
  ASSERT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  tap.mute(1, true);
  const Duration counted = time_until([&] { return routers[0]->read().in_flight == 0; });
  // Its last message is at most a second old.
  EXPECT_GE(counted, 1'900ms);
  EXPECT_TRUE(routers[0]->knows(0));
  EXPECT_EQ(routers[1]->exchange->sources(), 1U) << "it hears";
  tap.mute(1, false);
  EXPECT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  std::cout << "counted for " << ms_of(counted) << " ms after it fell silent\n";
}

TEST(LoadExchange, AStoppedRouterStopsCountingImmediately) {
  const NatsServer server;
  Routers routers;
  for (int i = 0; i < 2; ++i) {
    routers.push_back(std::make_unique<Router>(server, std::string(kScope)));
  }
  ASSERT_TRUE(all_know_all(routers));
  auto work = routers[1]->cells[0]->reserve(kBooking, system_clock().now());
  ASSERT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  const auto other = routers[0]->cells[1]->reserve(kBooking, system_clock().now());
  ASSERT_TRUE(eventually([&] { return routers[1]->read().in_flight == 2; }));
  routers[1]->exchange->stop();
  EXPECT_EQ(routers[1]->read(), routers[1]->own()) << "nobody else is weighed there either";
  // The server has its last message, although its connection ends immediately.
  work.release();
  routers[1] = nullptr;
  EXPECT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  EXPECT_EQ(routers[0]->value(R"(load_sources_gone_total{reason="ended"})"), 1);
  EXPECT_EQ(routers[0]->value(R"(load_sources_gone_total{reason="silent"})"), 0);
  routers[1] = std::make_unique<Router>(server, std::string(kScope));
  ASSERT_TRUE(all_know_all(routers));
  const auto next = routers[1]->cells[0]->reserve(kBooking, system_clock().now());
  EXPECT_TRUE(eventually([&] { return routers[0]->read().in_flight == 2; }));
}

TEST(LoadExchange, ARestartedRouterCountsTwiceForAtMostThreeSeconds) {
  const NatsServer server;
  Tap tap(server, 3, 1);
  ASSERT_TRUE(tap.is_connected());
  Routers routers;
  for (std::size_t i = 0; i < 2; ++i) {
    routers.push_back(std::make_unique<Router>(server, Tap::scope(i)));
  }
  ASSERT_TRUE(all_know_all(routers));
  auto lost = routers[1]->cells[0]->reserve(kBooking, system_clock().now());
  ASSERT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  tap.mute(1, true);  // as by kill -9: it does not announce its end
  const Instant died = system_clock().now();
  const Router again(server, Tap::scope(2));
  const auto work = again.cells[0]->reserve(kBooking, system_clock().now());
  ASSERT_TRUE(eventually([&] { return routers[0]->read().in_flight == 2; }))
      << "the dead one's still counts";
  EXPECT_TRUE(again.knows(1)) << "it never believes in the dead one";
  EXPECT_TRUE(eventually([&] { return routers[0]->read().in_flight == 1; }));
  EXPECT_LT(system_clock().now() - died, 3s + 1s);
}

TEST(LoadExchange, ARestartedRouterGetsAllTotalsByItsRequest) {
  constexpr std::uint32_t kManyRanks = 1'000;
  const NatsServer server;
  // No router sends all its totals without a request.
  LoadExchangeOptions asked_only;
  asked_only.own.snapshot_interval = std::chrono::hours(1);
  asked_only.others.silent_after = std::chrono::hours(1);
  Routers routers;
  for (int i = 0; i < 2; ++i) {
    routers.push_back(
        std::make_unique<Router>(server, std::string(kScope), asked_only, kManyRanks));
  }
  ASSERT_TRUE(all_know_all(routers));
  std::vector<fleet::BookedWork> work;
  for (const auto& router : routers) {
    for (const auto& cell : router->cells) {
      work.push_back(cell->reserve(kBooking, system_clock().now()));
    }
  }
  ASSERT_TRUE(all_agree(routers));
  std::vector<double> times;
  for (int run = 0; run < 5; ++run) {
    const Router restarted(server, std::string(kScope), asked_only, kManyRanks);
    ASSERT_TRUE(eventually([&] { return restarted.connection->connected(); }));
    const auto has_all = [&] { return restarted.read().in_flight == 2 * kManyRanks; };
    times.push_back(ms_of(time_until(has_all)));
  }
  std::sort(times.begin(), times.end());
  std::cout << "whole view of 2 routers, 1,000 ranks each, after being connected: " << times[0]
            << " to " << times[4] << " ms\n";
}

// Requests of many threads while the server neither reads nor answers.
TEST(LoadExchange, AStuckServerDelaysNoRequestAndLosesNoChange) {
  constexpr std::uint32_t kManyRanks = 1'000;
  constexpr int kThreads = 8;
  constexpr int kConcurrent = 4'096;
  NatsServer server;
  Routers routers;
  for (int i = 0; i < 2; ++i) {
    routers.push_back(
        std::make_unique<Router>(server, std::string(kScope), LoadExchangeOptions{}, kManyRanks));
  }
  ASSERT_TRUE(all_know_all(routers));
  server.freeze();
  std::vector<std::vector<fleet::BookedWork>> work(kThreads);
  std::vector<std::vector<double>> times(kThreads);
  {
    std::vector<WorkerThread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back("requests", [&, t](const std::stop_token&) {
        Rng rng(static_cast<std::uint64_t>(t));
        for (int i = 0; i < kConcurrent / kThreads; ++i) {
          const Instant begin = system_clock().now();
          work[t].push_back(
              routers[0]->cells[rng.below(kManyRanks)]->reserve(kBooking, system_clock().now()));
          if (i % 2 == 0) work[t].back().first_token();
          times[t].push_back(ms_of(system_clock().now() - begin));
        }
      });
    }
  }
  EXPECT_EQ(routers[0]->own().in_flight, static_cast<std::uint32_t>(kConcurrent));
  server.thaw();
  EXPECT_TRUE(all_agree(routers));
  work.clear();
  EXPECT_TRUE(nobody_counts_anything(routers));
  std::vector<double> all;
  for (const auto& some : times) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  std::cout << "booking with a stuck server: p50 " << all[all.size() / 2] << " ms, p99 "
            << all[all.size() * 99 / 100] << " ms, longest " << all.back() << " ms\n";
  // It would take seconds if one of them waited for the server.
  EXPECT_LT(all.back(), 1'000);
}

TEST(LoadExchange, CountsAndIgnoresMessagesWithoutTheKey) {
  const NatsServer server;
  const Router router(server, std::string(kScope));
  const Router stranger(server, "default/other");
  ASSERT_TRUE(eventually(
      [&] { return router.connection->connected() && stranger.connection->connected(); }));
  const contract::Subjects subjects(kScope, "0");
  const std::string subject = subjects.load();
  const std::string gone = load::encode(load::Leave{.instance = router.instance});
  std::string forged = sealer().seal(subject, gone);
  forged.back() ^= 1;
  // NATS drops messages before the router's subscription, so this repeats all until they arrive.
  EXPECT_TRUE(eventually([&] {
    stranger.connection->publish(subject, std::string(40, '\x09'));
    stranger.connection->publish(subject, "\x01");
    stranger.connection->publish(subject, forged);
    stranger.connection->publish(subject, sealer().seal(subject, "no message"));
    return router.value(R"(load_left_aside_total{reason="too-short"})") > 0 &&
           router.value(R"(load_left_aside_total{reason="wrong-tag"})") > 0 &&
           router.value(R"(load_left_aside_total{reason="other-version"})") > 0 &&
           router.value(R"(load_left_aside_total{reason="malformed"})") > 0;
  })) << router.metrics.scrape();
  EXPECT_EQ(router.exchange->sources(), 0U);
}

// The reservations that a router should end.
class Ended {
 public:
  Supersede callback() {
    return [this](const std::vector<load::ReservationName>& names) {
      const MutexLock lock(mutex_);
      names_.insert(names_.end(), names.begin(), names.end());
    };
  }
  [[nodiscard]] bool has(const load::ReservationName& name) const {
    const MutexLock lock(mutex_);
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 private:
  mutable Mutex mutex_;
  std::vector<load::ReservationName> names_ SL_GUARDED_BY(mutex_);
};

TEST(LoadExchange, AReservationTakenAtAnotherRouterEndsAtTheFirst) {
  const NatsServer server;
  Ended ended;
  const Router first(server, std::string(kScope), {.supersede = ended.callback()});
  Ended not_ended;
  const Router second(server, std::string(kScope), {.supersede = not_ended.callback()});
  ASSERT_TRUE(first.knows(1) && second.knows(1));
  const load::ReservationName name{.instance = "front", .number = 7, .attempt = 2};
  second.queue->put_taken({name});
  EXPECT_TRUE(eventually([&] { return ended.has(name); }));
  EXPECT_FALSE(not_ended.has(name));
  EXPECT_EQ(second.value(R"(load_taken_total{where="here"})"), 1);
  EXPECT_TRUE(
      eventually([&] { return first.value(R"(load_taken_total{where="elsewhere"})") >= 1; }));
}

TEST(LoadExchange, ALostTakeoverArrivesWithALaterSnapshot) {
  const NatsServer server;
  Tap tap(server, 2, 1);
  ASSERT_TRUE(tap.is_connected());
  Ended ended;
  const Router first(server, Tap::scope(0), {.supersede = ended.callback()});
  const Router second(server, Tap::scope(1));
  ASSERT_TRUE(first.knows(1) && second.knows(1));
  const load::ReservationName short_loss{.instance = "front", .number = 1, .attempt = 2};
  tap.mute(1, true);
  second.queue->put_taken({short_loss});
  ASSERT_TRUE(eventually([&] { return second.queue->is_empty(); }));
  tap.mute(1, false);
  EXPECT_TRUE(eventually([&] { return ended.has(short_loss); }));
  const load::ReservationName long_loss{.instance = "front", .number = 2, .attempt = 2};
  tap.mute(1, true);
  second.queue->put_taken({long_loss});
  ASSERT_TRUE(first.knows(0)) << "longer than it is told again by itself";
  const std::string told = R"(load_snapshots_total{direction="out"})";
  const double snapshots = second.value(told);
  EXPECT_TRUE(eventually([&] { return second.value(told) >= snapshots + 2; }));
  EXPECT_FALSE(ended.has(long_loss));
  tap.mute(1, false);
  EXPECT_TRUE(eventually([&] { return ended.has(long_loss); }));
}

TEST(LoadExchange, ALostTakeoverIsRepeatedWithoutAGap) {
  const NatsServer server;
  Tap tap(server, 2, 1);
  ASSERT_TRUE(tap.is_connected());
  Ended ended;
  const Router first(server, Tap::scope(0), {.supersede = ended.callback()});
  const Router second(server, Tap::scope(1));
  ASSERT_TRUE(first.knows(1) && second.knows(1));
  const load::ReservationName name{.instance = "front", .number = 1, .attempt = 2};
  tap.drop_takings(true);
  second.queue->put_taken({name});
  ASSERT_TRUE(eventually([&] { return tap.takings_dropped() > 0; }));
  EXPECT_FALSE(ended.has(name));
  tap.drop_takings(false);
  EXPECT_TRUE(eventually([&] { return ended.has(name); }));
}

TEST(LoadExchange, ATakeoverOfAnUnknownRouterEndsNothing) {
  const NatsServer server;
  Ended ended;
  const Router router(server, std::string(kScope), {.supersede = ended.callback()});
  const Router speaker(server, "default/other");
  ASSERT_TRUE(eventually(
      [&] { return router.connection->connected() && speaker.connection->connected(); }));
  const load::ReservationName name{.instance = "front", .number = 1, .attempt = 2};
  const std::string subject = contract::Subjects(kScope, "0").load();
  const load::Takeover taken{.instance = 9, .names = {{name, 1}}};
  EXPECT_TRUE(eventually([&] {
    speaker.connection->publish(subject, sealer().seal(subject, load::encode(taken)));
    return router.value(R"(load_left_aside_total{reason="stranger"})") > 0;
  }));
  EXPECT_FALSE(ended.has(name));
}

TEST(LoadExchange, ALossReportedByNatsRequestsAllTotals) {
  const NatsServer server(
      "authorization { default_permissions: { subscribe: { deny: \"sl.*.*.0.ask-load\" } }\n"
      "users: [ { user: any, password: any } ] }\nno_auth_user: any");
  const Router router(server, std::string(kScope));
  EXPECT_TRUE(eventually([&] { return router.value(R"(load_gaps_total{seen_by="nats"})") >= 1; }));
}

// What a router holds for frontends, with the part of its selection API for takeovers.
class Held {
 public:
  explicit Held(const NatsServer& server)
      : router(server, std::string(kScope),
               {.supersede = [this](const auto& names) { supersede(names); },
                .stands = [this](const auto& name) { return state(name) != State::Free; }}) {}

  void book(const load::ReservationName& name) {
    {
      const MutexLock lock(mutex_);
      leases_.add(lease_name(name), name.number, std::nullopt, kNow);
    }
    router.queue->put_taken({name});
  }
  [[nodiscard]] bool has(const load::ReservationName& name) const {
    return state(name) == State::Open;
  }

 private:
  using State = leases::LeaseBook::NameState::State;
  static constexpr Instant kNow{1'000s};

  static leases::Name lease_name(const load::ReservationName& name) {
    return {.instance = name.instance, .number = name.number, .attempt = name.attempt};
  }
  [[nodiscard]] State state(const load::ReservationName& name) const {
    const MutexLock lock(mutex_);
    return leases_.find(lease_name(name)).state;
  }
  void supersede(const std::vector<load::ReservationName>& names) {
    const MutexLock lock(mutex_);
    for (const auto& name : names) leases_.supersede(lease_name(name));
  }

  mutable Mutex mutex_;
  leases::LeaseBook leases_ SL_GUARDED_BY(mutex_);

 public:
  const Router router;  // ends before the objects that its exchange asks
};

// A booking whose takeover waits to be sent meets the other's takeover, in all orders.
TEST(LoadExchange, AReservationTakenTwiceCountsAtExactlyOneRouter) {
  constexpr std::uint64_t kNames = 2'000;
  const NatsServer server;
  Held a(server);
  Held b(server);
  ASSERT_TRUE(a.router.knows(1) && b.router.knows(1));
  const auto name = [](std::uint64_t number) {
    return load::ReservationName{.instance = "front", .number = number, .attempt = 1};
  };
  std::barrier together(2);
  const auto book_all = [&](Held& held) {
    for (std::uint64_t number = 1; number <= kNames; ++number) {
      together.arrive_and_wait();
      held.book(name(number));
    }
  };
  {
    const WorkerThread other("books", [&](const std::stop_token&) { book_all(b); });
    book_all(a);
  }
  std::map<int, std::uint64_t> names_by_holders;
  EXPECT_TRUE(eventually([&] {
    names_by_holders.clear();
    for (std::uint64_t number = 1; number <= kNames; ++number) {
      ++names_by_holders[int{a.has(name(number))} + int{b.has(name(number))}];
    }
    return names_by_holders[1] == kNames;
  })) << names_by_holders[0]
      << " at neither, " << names_by_holders[2] << " at both";
}

// A takeover never arrives: the first router ends its booking when the frontend is silent.
TEST(LoadExchange, ALostTakeoverCountsTwiceUntilItsCallerExpires) {
  leases::LeaseBook first;
  Instant now{1'000s};
  const leases::Name name{.instance = "front", .number = 7, .attempt = 1};
  first.add(name, 1, std::nullopt, now);
  now += 15s - 1ms;
  EXPECT_TRUE(first.expire(now).empty());
  now += 1ms;
  EXPECT_EQ(first.expire(now), std::vector<leases::LeaseId>{1});
}

}  // namespace
}  // namespace sightline::load_exchange
