// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/top/frame.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace sightline::top {
namespace {

WorkerFacts worker(const std::string& name, const std::string& state, std::uint64_t load) {
  WorkerFacts w;
  w.name = name;
  w.state = state;
  w.is_ready = state == "ready";
  w.in_flight = load;
  w.running = load * 2;
  w.waiting = load / 4;
  w.blocks = 31'250 + load;
  w.lag_ms = 3 * load;
  return w;
}

RouterFacts router(const std::string& address, std::vector<WorkerFacts> workers) {
  RouterFacts r;
  r.address = address;
  r.is_ready = true;
  r.list_source = "push";
  r.generation = 12;
  r.active = 17;
  r.requests_per_s = 206.04;
  r.hit_ratio = 0.612;
  r.is_nats_connected = true;
  r.members = MemberCounts{.routers = 2, .frontends = 1, .agents = 8, .unfit = 0};
  r.workers = std::move(workers);
  return r;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Frame, ShowsRoutersAndWorkersAtOneLook) {
  auto late = worker("w2", "unverified", 1);
  late.reason = "its blocks are not yet compared with its agent's digest";
  late.lag_ms.reset();
  auto fresh = worker("w0", "ready", 9);
  fresh.digest_age_ms = 412;
  auto stale = worker("w1", "ready", 4);
  stale.digest_age_ms = 61'000;
  RouterFacts dead;
  dead.address = "10.0.0.9:9090";
  dead.trouble = "no answer: connection refused";
  RouterFacts alone = router("10.0.0.8:9090", {fresh, stale, worker("w2", "ready", 3)});
  alone.is_ready = false;
  alone.members->unfit = 3;
  const auto lines = render({router("10.0.0.7:9090", {fresh, stale, late}), alone, dead}, {},
                            "14:02:11 UTC", "q ends");
  EXPECT_EQ(joined(lines),
            R"(sightline top: 2 of 3 admin ports answer                            14:02:11 UTC
requests 412.1/s  active 34  hit 61.2%  workers 2/3 ready  blocks 93.8k

ROUTER               READY LIST    GEN ACTIVE  REQ/S    HIT NATS MEMBERS
10.0.0.7:9090        yes   push     12     17  206.0  61.2% up   2r 1f 8a
10.0.0.8:9090        no    push     12     17  206.0  61.2% up   2r 1f 8a 3!
10.0.0.9:9090        no answer: connection refused

WORKER                 STATE      READY   LOAD    RUN+WAIT  BLOCKS    LAG DIGEST
w2                     unverified   1/2      4         6+0   31.3k    9ms      -
w0                     ready        2/2     18        18+2   31.3k   27ms  412ms
w1                     ready        2/2      8         8+1   31.3k   12ms  61.0s
w2: its blocks are not yet compared with its agent's digest










q ends
)");
}

TEST(Frame, WhatDoesNotFitIsSummedUp) {
  std::vector<WorkerFacts> many;
  for (std::size_t i = 0; i < 1'000; ++i) {
    many.push_back(worker("worker-" + std::to_string(i), "ready", i));
  }
  many[5].state = "down";
  many[5].is_ready = false;
  many[5].reason = "connection refused";
  many[7].state = "draining";
  many[7].is_ready = false;
  std::vector<RouterFacts> routers(9, router("10.0.0.7:9090", {}));
  routers[0].workers = many;
  const auto lines = render(routers, {}, "now", "q ends");
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_EQ(lines[9], "4 more");
  EXPECT_EQ(lines[12].substr(0, 33), "worker-5               down      ");
  EXPECT_EQ(lines[13].substr(0, 33), "worker-7               draining  ");
  EXPECT_EQ(lines[14].substr(0, 33), "worker-999             ready     ");
  EXPECT_EQ(lines[21], "991 more: 991 ready");
  EXPECT_EQ(lines[22], "worker-5: connection refused");
  EXPECT_EQ(lines[23], "q ends");
}

TEST(Frame, IsNeverLargerThanTheScreen) {
  std::vector<WorkerFacts> workers;
  for (std::size_t i = 0; i < 40; ++i) {
    workers.push_back(worker(std::string(60, 'n') + std::to_string(i), "unverified", i * 1000));
    workers.back().reason = std::string(200, 'r');
  }
  std::vector<RouterFacts> routers(12, router(std::string(100, 'a'), workers));
  routers[3].trouble = std::string(1000, 't');
  for (std::size_t columns = 1; columns < 200; columns += 13) {
    for (std::size_t rows = 1; rows < 80; rows += 7) {
      const auto lines = render(routers, {columns, rows}, "title", rows % 2 == 0 ? "" : "footer");
      EXPECT_LE(lines.size(), std::max(rows, kRowsMin)) << columns << " " << rows;
      for (const std::string& line : lines) {
        EXPECT_LE(line.size(), std::max(columns, kColumnsMin));
      }
    }
  }
}

TEST(Frame, SaysThatNothingIsThere) {
  const auto lines = render({}, {}, "now", "");
  EXPECT_EQ(lines[0].substr(0, 37), "sightline top: 0 of 0 admin ports ans");
  EXPECT_EQ(lines[1], "requests -  active 0  hit -  workers 0/0 ready  blocks 0");
}

TEST(Frame, NumbersAreShort) {
  const std::pair<std::uint64_t, const char*> counts[] = {
      {0, "0"},         {9'999, "9999"},    {10'000, "10.0k"},   {99'949, "99.9k"},
      {99'950, "100k"}, {999'949, "1000k"}, {1'000'000, "1.0M"}, {12'345'678, "12.3M"},
      {~0ULL, "18.4E"}};
  for (const auto& [count, want] : counts) EXPECT_EQ(short_count(count), want) << count;
  const std::pair<std::uint64_t, const char*> times[] = {
      {0, "0ms"},      {999, "999ms"},     {1'000, "1.0s"},   {99'900, "99.9s"},
      {120'000, "2m"}, {5'999'999, "99m"}, {6'000'000, "1h"}, {~0ULL, ">999h"}};
  for (const auto& [ms, want] : times) EXPECT_EQ(short_time(ms), want) << ms;
  EXPECT_EQ(short_time({}), "-");
}

}  // namespace
}  // namespace sightline::top
