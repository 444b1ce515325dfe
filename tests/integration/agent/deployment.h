// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/cache/index/exact_index.h"
#include "router/replicas/agent/agent_streams.h"
#include "router/replicas/envelope/envelope.h"
#include "router/replicas/followed/followed_feeds.h"
#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

// Both ends as processes have them: an agent whose engines the test plays, and a router.
namespace sightline::agent::test {

using Blocks = std::set<std::uint64_t>;
using operations::FeedHealth;
using sightline::test::eventually;
using sightline::test::NatsServer;

// Random numbers, from any thread.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng_(seed) {}
  std::uint64_t next() {
    const MutexLock lock(mutex_);
    return rng_.next();
  }

 private:
  Mutex mutex_;
  Rng rng_ SL_GUARDED_BY(mutex_);
};

// The connections and metrics of a process.
struct Host {
  Host(const NatsServer& server, const std::string& name) {
    const auto connect = [&](nats::Sending sending) {
      contract::NatsSettings settings;
      settings.urls = server.url();
      auto made = nats::Connection::create({settings, name, sending}, metrics, system_clock());
      return std::move(*made);
    };
    events = connect(nats::Sending::InBatches);
    control = connect(nats::Sending::AtOnce);
  }
  // The value of a series `sightline_NAME{labels}`, -1 if it does not exist.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics.scrape();
    const auto at = text.find("\nsightline_" + series + " ");
    if (at == std::string::npos) return -1;
    return std::stod(text.substr(text.find(' ', at + series.size() + 11) + 1));
  }

  runtime::Metrics metrics;
  const contract::Subjects subjects{"default/default", "0"};
  const envelope::Sealer sealer{contract::development_identity_key(),
                                {.scope = "default/default", .revision = "0", .fingerprint = "f"}};
  std::unique_ptr<nats::Connection> events;
  std::unique_ptr<nats::Connection> control;
};

struct Router {
  Router(const NatsServer& server, const std::string& name, follower::FollowerOptions follower = {})
      : host(server, name) {
    followed::FollowedOptions options;
    options.follower = follower;
    feeds = std::make_unique<followed::FollowedFeeds>(
        std::move(options), followed::FollowedFeeds::Deps{.events = *host.events,
                                                          .control = *host.control,
                                                          .subjects = host.subjects,
                                                          .sealer = host.sealer,
                                                          .index = index,
                                                          .held = index,
                                                          .removals = removals,
                                                          .clock = system_clock(),
                                                          .reader = name,
                                                          .draw = [this] { return draw.next(); }});
  }

  [[nodiscard]] Blocks held(CacheId cache) const {
    Blocks blocks;
    for (const auto key : index.held(cache, operations::Tier::Gpu)) blocks.insert(key.value);
    return blocks;
  }
  [[nodiscard]] operations::CacheFacts facts(CacheId cache) const {
    const auto status = feeds->status(cache);
    return status ? status->facts : operations::CacheFacts{};
  }
  [[nodiscard]] bool comes_to_hold(CacheId cache, const Blocks& blocks) const {
    return eventually(
        [&] { return facts(cache).health == FeedHealth::Verified && held(cache) == blocks; });
  }
  // Waits until the cache does not count, for a reason that contains this text.
  [[nodiscard]] bool comes_to_doubt(CacheId cache, const std::string& reason) const {
    return eventually([&] {
      const auto now = facts(cache);
      return now.health == FeedHealth::ToldBadly && now.reason.find(reason) != std::string::npos;
    });
  }

  Draw draw{5};
  index::ExactIndex index;
  index::RemovalJournal removals;
  Host host;
  std::unique_ptr<followed::FollowedFeeds> feeds;
};

// An agent whose engines the test plays. Engine calls come from one thread.
struct Agent {
  Agent(const NatsServer& server, std::uint64_t number, publisher::PublisherOptions options = {})
      : draw(number), host(server, "agent-" + std::to_string(number)) {
    AgentStreams::Options with;
    with.agent = "agent-" + std::to_string(number);
    with.publisher = std::move(options);
    with.draw = [this] { return draw.next(); };
    with.look_around = std::chrono::milliseconds(20);
    AgentStreams::Wishes wishes;
    wishes.look = [this](CacheId /*cache*/) { ++looks; };
    wishes.relearn = [this](CacheId cache, bool replay) {
      ++relearns;
      relearnt = cache.value * 2 + (replay ? 1 : 0);
    };
    wishes.wanted = [this] {
      const MutexLock lock(mutex);
      return wanted;
    };
    streams.emplace(std::move(with), std::move(wishes),
                    AgentStreams::Deps{.control = *host.control,
                                       .events = *host.events,
                                       .sealer = host.sealer,
                                       .subjects = host.subjects,
                                       .metrics = host.metrics,
                                       .clock = system_clock()});
  }
  void want(std::vector<WantedStream> now) {
    const MutexLock lock(mutex);
    wanted = std::move(now);
  }

  Draw draw;
  Host host;
  Mutex mutex;
  std::vector<WantedStream> wanted SL_GUARDED_BY(mutex);
  std::atomic<int> looks = 0;
  std::atomic<int> relearns = 0;
  std::atomic<std::uint32_t> relearnt = 0;  // twice the cache's id, plus one for a replay
  std::optional<AgentStreams> streams;
};

// The events of one rank as kv-events reads them.
class Feed {
 public:
  Feed(AgentStreams& streams, const frames::StreamName& name, CacheId cache)
      : streams_(streams), cache_(cache) {
    cache_name_.worker = name.worker;
    cache_name_.rank = name.rank;
    told_.facts.health = FeedHealth::Verified;
    told_.facts.has_replay = true;
    streams_.open(name, cache_);
    sink_ = streams_.make_sink(cache_);
    tell();
  }
  ~Feed() {
    streams_.close(cache_);
    sink_.reset();
  }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  void store(std::uint64_t first, std::size_t count) {
    operations::Store stored;
    for (std::size_t i = 0; i < count; ++i) stored.keys.push_back({first + i});
    for (const auto key : stored.keys) blocks_.insert(key.value);
    sink_->take(cache_name_, stored);
    tell();
  }
  void remove(std::uint64_t block) {
    blocks_.erase(block);
    sink_->take(cache_name_, operations::Remove{.tier = operations::Tier::Gpu, .keys = {{block}}});
    tell();
  }
  // As the normaliser does when the engine is another process: the next events have no proof.
  void restart_engine() {
    blocks_.clear();
    sink_->take(cache_name_, operations::Clear{});
    ++cache_name_.epoch;
    tell_health(FeedHealth::Replaying);
    tell_health(FeedHealth::Verified);
  }
  void tell_health(FeedHealth health) {
    told_.facts.health = health;
    tell();
  }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }

 private:
  void tell() {
    told_.epoch = cache_name_.epoch;
    told_.facts.caught_up = system_clock().now();
    streams_.tell(cache_, told_);
  }

  AgentStreams& streams_;
  const CacheId cache_;
  operations::CacheName cache_name_;
  CacheReport told_;
  Blocks blocks_;
  std::unique_ptr<operations::OperationSink> sink_;
};

}  // namespace sightline::agent::test
