// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "router/replicas/follower/follower.h"
#include "tests/unit/router/replicas/follower/plain_agent.h"

namespace sightline::follower {

using frames::Body;
using operations::FeedHealth;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::PlainAgent;
using test::PlainCache;
using test::removal;
using test::store;

// A follower and agents, connected without loss or delay.
class FrameFollowerTest : public ::testing::Test {
 protected:
  FrameFollowerTest() { agent.publish({store({1, 2, 3})}, false); }

  void make(FollowerOptions options = {}, std::size_t blocks_max = SIZE_MAX) {
    held = PlainCache(blocks_max);
    FollowerSetup setup{{"w0", 1}, "r0", 7, options};
    follower.emplace(std::move(setup), held, held, now);
  }
  // Passes the follower's requests and the agents' replies, as long as replies cause more requests.
  void talk() {
    for (int i = 0; i < 1'000; ++i) {
      const auto asks = follower->turn(now);
      if (asks.empty()) return;
      for (const Body& ask : asks) tell_agents(ask);
    }
    FAIL() << "it asks without end";
  }
  void tell_agents(const Body& ask) {
    asked.push_back(ask);
    for (PlainAgent* each : agents) {
      for (Body& answer : each->hear(ask)) {
        if (!is_lost || !is_lost(answer)) follower->hear(std::move(answer), now);
      }
    }
  }
  void wait(Duration duration, bool with_beats = false) {
    const Instant end = now + duration;
    Instant beat = now + seconds(1);
    for (talk(); now < end; talk()) {
      now = std::min({end, std::max(now + milliseconds(1), follower->deadline()), beat});
      if (now < beat) continue;
      beat += seconds(1);
      if (!with_beats) continue;
      for (PlainAgent* each : agents) follower->hear(each->publish({}, true), now);
    }
  }
  void settle() { wait(milliseconds(100)); }
  // All messages of the agent take `delay`. Returns the share of the time in which the follower is
  // verified.
  double live_with_delay(Duration time, Duration delay) {
    int looks = 0;
    int verified = 0;
    for (const Instant end = now + time; now < end; now += milliseconds(100), ++looks) {
      late.emplace(now + delay, agent.publish({store({1'000 + asked.size()})}, true));
      for (const Body& ask : follower->turn(now)) {
        asked.push_back(ask);
        for (Body& answer : agent.hear(ask)) late.emplace(now + delay, std::move(answer));
      }
      for (; !late.empty() && late.begin()->first <= now; late.erase(late.begin())) {
        follower->hear(std::move(late.begin()->second), now);
      }
      follower->turn(now);
      verified += is_verified() ? 1 : 0;
    }
    return static_cast<double>(verified) / looks;
  }
  [[nodiscard]] bool is_verified() const {
    return follower->facts().health == FeedHealth::Verified;
  }
  [[nodiscard]] bool is_equal() const { return held.blocks == agent.cache.blocks; }
  [[nodiscard]] std::string reason() const { return follower->facts().reason; }
  [[nodiscard]] std::uint64_t dropped(Drop why) const { return follower->statistics().of(why); }
  template <class Ask>
  [[nodiscard]] std::size_t count() const {
    std::size_t count = 0;
    for (const Body& ask : asked) count += std::holds_alternative<Ask>(ask) ? 1 : 0;
    return count;
  }

  Instant now = Instant{} + seconds(1'000);
  PlainAgent agent{"a", 10, 1'000'000};
  PlainAgent other{"b", 20, 2'000'000};
  std::vector<PlainAgent*> agents = {&agent};
  PlainCache held;
  std::optional<FrameFollower> follower;
  std::vector<Body> asked;
  std::function<bool(const Body&)> is_lost;
  std::multimap<Instant, Body> late;
};

}  // namespace sightline::follower
