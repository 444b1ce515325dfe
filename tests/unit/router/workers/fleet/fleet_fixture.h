// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "router/workers/fleet/fleet.h"
#include "tests/fakes/manual_clock.h"

namespace sightline::fleet {

using contract::WorkerSpec;
using operations::FeedHealth;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline WorkerSpec spec_of(const std::string& text) { return *contract::parse_worker(text); }

// The event source in the answer of an engine with one rank.
inline std::vector<EventSource> one_source() {
  return {
      {.rank = 0, .enabled = true, .endpoint = "tcp://*:5557", .replay_endpoint = "tcp://*:5657"}};
}

inline Probe healthy_probe() {
  return {.health = Done{},
          .models = std::vector<ServedModel>{{"m", "", 4096}, {"ad", "m", 0}},
          .sources = one_source(),
          .load = ServerLoad{.running = 1,
                             .waiting = 2,
                             .kv_usage = 0.5,
                             .block_size = 16,
                             .ranks = {{0, 1, 2, 0.5}}}};
}

inline Probe failed_probe(bool refused) {
  Probe probe;
  probe.health = refused ? worker_error(ErrorCode::Unavailable, "connection refused", true)
                         : worker_error(ErrorCode::Timeout, "no answer in time", true);
  probe.refused = refused;
  return probe;
}

// A fleet with a probe every five seconds, the feeds that it announced, and the tests' reports
// about them.
class FleetFixture : public testing::Test {
 protected:
  FleetFixture()
      : fleet_({.probe_interval = seconds(5)},
               {[this](const Worker&, const Rank& rank) {
                  live_[rank.feed->cache] = *rank.feed;
                  if (follows_events_) tell_health(rank.feed->cache, FeedHealth::Verified);
                },
                [this](CacheId cache) { EXPECT_EQ(live_.erase(cache), 1u); },
                [this](CacheId cache) { return last_event_[cache]; }},
               metrics_, clock_) {}

  [[nodiscard]] std::shared_ptr<const Worker> worker(const std::string& name = "w") const {
    return fleet_.snapshot()->find(name);
  }
  [[nodiscard]] WorkerState state(const std::string& name = "w") const {
    return worker(name)->state;
  }
  // The feeds of all ranks that have one.
  [[nodiscard]] std::vector<Feed> feeds(const std::string& name = "w") const {
    std::vector<Feed> found;
    for (const Rank& rank : worker(name)->ranks) {
      if (rank.feed) found.push_back(*rank.feed);
    }
    return found;
  }
  // The cache of the worker's first feed, or of a rank's.
  [[nodiscard]] CacheId cache_of(const std::string& name) const { return feeds(name).at(0).cache; }
  [[nodiscard]] CacheId cache_of(std::size_t rank) const {
    return worker()->ranks.at(rank).feed.value().cache;
  }
  [[nodiscard]] bool metric_has(const std::string& line) const {
    return metrics_.scrape().find(line) != std::string::npos;
  }

  // Each passes all facts about the cache so far to the fleet.
  void tell_health(CacheId cache, FeedHealth health) {
    facts_of(cache).health = health;
    tell(cache);
  }
  void tell_block_size(CacheId cache, std::uint32_t tokens, bool has_several = false) {
    operations::CacheFacts& facts = facts_of(cache);
    facts.sequence = 1;
    (has_several ? facts.block_size_conflict : facts.block_size) = tokens;
    if (!has_several) facts.block_size_conflict.reset();
    tell(cache);
  }
  void tell_forgotten(CacheId cache, bool forgotten, bool replay_silent = false) {
    operations::CacheFacts& facts = facts_of(cache);
    facts.sequence = 1;
    facts.missing.forgotten = forgotten;
    facts.replay_silent = replay_silent;
    facts.has_replay = !live_.at(cache).endpoints.replay.empty();
    tell(cache);
  }
  void tell(CacheId cache) { fleet_.take_facts(cache, facts_of(cache)); }
  operations::CacheFacts& facts_of(CacheId cache) {
    return facts_.try_emplace(cache, operations::CacheFacts{.missing = {.forgotten = false}})
        .first->second;
  }

  runtime::Metrics metrics_;
  test::ManualClock clock_;
  std::map<CacheId, Feed> live_;  // feeds announced and not removed
  bool follows_events_ = true;    // and says so
  std::map<CacheId, Instant> last_event_;
  std::map<CacheId, operations::CacheFacts> facts_;
  Fleet fleet_;
};

}  // namespace sightline::fleet
