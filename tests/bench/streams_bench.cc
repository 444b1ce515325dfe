// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// Measures the way from an engine's event to a replica's index, over a real nats-server. All parts
// run in this process.
//
// lag: eight caches together store 200,000 blocks a second, 25 at a time, and remove as many. The
// lag begins with the call by which the agent takes an operation. It ends when the replica's index
// has applied it. In the same run, 200 small messages a second go over the same two connections
// through NATS alone. Their time begins with publish() and ends when the reader's inbox returns
// them. "not there": how many more stores were on their way at the end of the ten seconds than at
// the beginning. The digests are equal after that.
//
// join: an agent has 2,000,000 blocks and receives 20,000 more a second. A replica joins. The time
// ends when its index is proved to be equal to the agent's.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/runtime/metrics.h"

#include "router/cache/index/exact_index.h"
#include "router/process/replica_stack.h"
#include "router/replicas/agent/agent_streams.h"
#include "router/replicas/followed/followed_feeds.h"
#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline {
namespace {

using operations::Remove;
using operations::Store;
using operations::Tier;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kCaches = 8;
constexpr std::size_t kBlocksPerOperation = 25;
constexpr std::size_t kJoinBlocks = 2'000'000;

double ms_of(Duration time) { return duration<double, std::milli>(time).count(); }

double quantile(std::vector<Duration>& times, double q) {
  SL_CHECK(!times.empty());
  std::sort(times.begin(), times.end());
  return ms_of(times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))]);
}

std::string worker_name(std::size_t cache) { return "w" + std::to_string(cache); }

CacheId cache_id(std::size_t cache) { return CacheId{static_cast<std::uint32_t>(cache + 1)}; }

// Lets a thread wait for a time.
class Pace {
 public:
  void wait_until(const std::stop_token& stop, Instant until) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, until, [] { return false; });
  }

 private:
  Mutex mutex_;
  StopCondVar changed_;
};

// An index that records when it has applied the last block of a store.
class TimedIndex final : public index::IndexWriter {
 public:
  void apply(CacheId cache, const operations::Operation& operation) override {
    index.apply(cache, operation);
    if (const auto* store = std::get_if<Store>(&operation)) note(store->keys.back());
  }
  void clear_later(CacheId cache) override { index.clear_later(cache); }
  bool reclaim_some() override { return index.reclaim_some(); }

  void expect(keys::BlockKey key, Instant taken) {
    const MutexLock lock(mutex_);
    expected_[key.value] = taken;
  }
  std::vector<Duration> take_lags() {
    const MutexLock lock(mutex_);
    return std::exchange(lags_, {});
  }

  index::ExactIndex index;

 private:
  void note(keys::BlockKey key) {
    const Instant now = system_clock().now();
    const MutexLock lock(mutex_);
    const auto found = expected_.find(key.value);
    if (found == expected_.end()) return;
    lags_.push_back(now - found->second);
    expected_.erase(found);
  }

  Mutex mutex_;
  std::map<std::uint64_t, Instant> expected_ SL_GUARDED_BY(mutex_);
  std::vector<Duration> lags_ SL_GUARDED_BY(mutex_);
};

struct Process {
  Process(const test::NatsServer& server, membership::Role role) {
    process::ReplicaStack::Options options;
    options.nats.urls = server.url();
    options.role = role;
    options.model_digest = std::string(64, 'a');
    options.scope_model = "m";
    auto made = process::ReplicaStack::create(
        options, {.identity = identity, .metrics = metrics, .clock = system_clock()});
    SL_CHECK(made.ok());
    stack = std::move(*made);
    SL_CHECK(test::eventually(
        [this] { return stack->control().connected() && stack->events().connected(); }));
  }

  contract::IdentityKey identity = contract::development_identity_key();
  runtime::Metrics metrics;
  std::unique_ptr<process::ReplicaStack> stack;
};

struct Agent {
  explicit Agent(const test::NatsServer& server) : process(server, membership::Role::Agent) {
    agent::AgentStreams::Options options;
    options.agent = "agent";
    options.draw = [this] {
      const MutexLock lock(mutex);
      return rng.next();
    };
    agent::AgentStreams::Wishes wishes;
    wishes.look = [](CacheId) {};
    wishes.relearn = [](CacheId, bool) {};
    wishes.wanted = [this] { return wanted; };
    for (std::size_t i = 0; i < kCaches; ++i) wanted.push_back({{.worker = worker_name(i)}, ""});
    process::ReplicaStack& stack = *process.stack;
    streams = std::make_unique<agent::AgentStreams>(
        std::move(options), std::move(wishes),
        agent::AgentStreams::Deps{.control = stack.control(),
                                  .events = stack.events(),
                                  .sealer = stack.sealer(),
                                  .subjects = stack.subjects(),
                                  .metrics = process.metrics,
                                  .clock = system_clock()});
    for (std::size_t i = 0; i < kCaches; ++i) {
      streams->open({.worker = worker_name(i)}, cache_id(i));
      sinks.push_back(streams->make_sink(cache_id(i)));
      tell(i);
    }
  }

  void tell(std::size_t cache) {
    operations::CacheFacts facts;
    facts.health = operations::FeedHealth::Verified;
    facts.missing.forgotten = false;
    facts.caught_up = system_clock().now();
    streams->tell(cache_id(cache), {.epoch = 1, .facts = facts, .lag_by_stamp = {}});
  }
  void take(std::size_t cache, const operations::Operation& operation) {
    sinks[cache]->take({.worker = worker_name(cache), .rank = 0, .epoch = 1}, operation);
  }

  Process process;
  Mutex mutex;
  Rng rng SL_GUARDED_BY(mutex){1};
  std::vector<agent::WantedStream> wanted;
  std::unique_ptr<agent::AgentStreams> streams;
  std::vector<std::unique_ptr<operations::OperationSink>> sinks;
};

struct Replica {
  explicit Replica(const test::NatsServer& server) : process(server, membership::Role::Router) {
    process::ReplicaStack& stack = *process.stack;
    feeds = std::make_unique<followed::FollowedFeeds>(
        followed::FollowedOptions{},
        followed::FollowedFeeds::Deps{.events = stack.events(),
                                      .control = stack.control(),
                                      .subjects = stack.subjects(),
                                      .sealer = stack.sealer(),
                                      .index = timed,
                                      .held = timed.index,
                                      .removals = removals,
                                      .clock = system_clock(),
                                      .reader = std::to_string(stack.instance()),
                                      .draw = [this] {
                                        const MutexLock lock(mutex);
                                        return rng.next();
                                      }});
  }
  void follow() {
    for (std::size_t i = 0; i < kCaches; ++i) {
      feeds->add(cache_id(i), {.worker = worker_name(i)});
    }
  }
  void await_verified() const {
    SL_CHECK(test::eventually([this] { return is_verified(); }));
  }
  [[nodiscard]] bool is_verified() const {
    const auto all = feeds->statuses();
    return all.size() == kCaches && std::all_of(all.begin(), all.end(), [](const auto& status) {
             return status.facts.health == operations::FeedHealth::Verified;
           });
  }

  Process process;
  Mutex mutex;
  Rng rng SL_GUARDED_BY(mutex){2};
  TimedIndex timed;
  index::RemovalJournal removals;
  std::unique_ptr<followed::FollowedFeeds> feeds;
};

// Stores and removes on all caches in turn, so many blocks a second. Half of them are stores.
class Events {
 public:
  Events(Agent& agent, TimedIndex* timed, std::size_t blocks_per_second)
      : agent_(agent),
        timed_(timed),
        pause_(Duration(seconds(1)) * kBlocksPerOperation / blocks_per_second) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }

 private:
  void run(const std::stop_token& stop) {
    Rng rng(3);
    std::vector<std::vector<keys::BlockKey>> held(kCaches);
    Instant due = system_clock().now();
    for (std::size_t turn = 0; !stop.stop_requested(); ++turn) {
      due += pause_;
      pace_.wait_until(stop, due);
      const std::size_t cache = turn / 2 % kCaches;
      if (turn % 2 == 1) {
        agent_.take(cache, Remove{.tier = Tier::Gpu, .keys = held[cache]});
      } else {
        Store store{.tier = Tier::Gpu, .parent = {}, .keys = {}};
        for (std::size_t i = 0; i < kBlocksPerOperation; ++i) {
          store.keys.push_back({rng.next() >> 3U});
        }
        held[cache] = store.keys;
        if (timed_ != nullptr) timed_->expect(store.keys.back(), system_clock().now());
        agent_.take(cache, store);
      }
      agent_.tell(cache);
      blocks_ += kBlocksPerOperation;
    }
  }

  Agent& agent_;
  TimedIndex* const timed_;
  const Duration pause_;
  std::atomic<std::uint64_t> blocks_ = 0;
  Pace pace_;
  std::jthread thread_;
};

// Sends messages through NATS alone, over the connections of the events.
class RawMessages {
 public:
  RawMessages(process::ReplicaStack& from, process::ReplicaStack& to)
      : inbox_(std::make_shared<nats::Inbox>(nats::Inbox::Limits{})) {
    const std::string subject = from.subjects().load() + ".raw";
    to.events().subscribe(subject, inbox_);
    reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
    sender_ = std::jthread([this, &from, subject](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto now = system_clock().now().time_since_epoch().count();
        from.events().publish(subject, std::to_string(now));
        pace_.wait_until(stop, system_clock().now() + milliseconds(5));
      }
    });
  }
  std::vector<Duration> take_times() {
    const MutexLock lock(mutex_);
    return std::exchange(times_, {});
  }

 private:
  void read(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto event = inbox_->take(system_clock().now() + milliseconds(50));
      if (!event) continue;
      const auto* message = std::get_if<nats::Message>(&*event);
      if (message == nullptr) continue;
      const Instant sent{Duration(std::stoll(message->payload))};
      const MutexLock lock(mutex_);
      times_.push_back(system_clock().now() - sent);
    }
  }

  Mutex mutex_;
  std::vector<Duration> times_ SL_GUARDED_BY(mutex_);
  const std::shared_ptr<nats::Inbox> inbox_;
  Pace pace_;
  std::jthread reader_;
  std::jthread sender_;
};

void measure_lag() {
  const test::NatsServer server;
  Agent agent(server);
  Replica replica(server);
  replica.follow();
  replica.await_verified();
  Pace measured;
  RawMessages raw(*agent.process.stack, *replica.process.stack);
  std::printf("%10s %12s %12s %12s %12s %10s\n", "blocks/s", "lag p50 ms", "lag p99 ms",
              "NATS p50 ms", "NATS p99 ms", "not there");
  for (const std::size_t rate : {20'000UL, 200'000UL}) {
    {
      Events events(agent, &replica.timed, rate);
      measured.wait_until({}, system_clock().now() + seconds(2));
      (void)replica.timed.take_lags();
      (void)raw.take_times();
      const std::uint64_t before = events.blocks();
      const Instant begin = system_clock().now();
      measured.wait_until({}, begin + seconds(10));
      const double took = duration<double>(system_clock().now() - begin).count();
      const double reached = static_cast<double>(events.blocks() - before) / took;
      std::vector<Duration> lags = replica.timed.take_lags();
      std::vector<Duration> times = raw.take_times();
      const std::size_t expected =
          static_cast<std::size_t>(reached * took) / kBlocksPerOperation / 2;
      std::printf("%10.0f %12.2f %12.2f %12.2f %12.2f %10zd\n", reached, quantile(lags, 0.5),
                  quantile(lags, 0.99), quantile(times, 0.5), quantile(times, 0.99),
                  static_cast<std::ptrdiff_t>(expected) - static_cast<std::ptrdiff_t>(lags.size()));
    }
    replica.await_verified();
  }
}

void measure_join() {
  const test::NatsServer server;
  Agent agent(server);
  Rng rng(4);
  for (std::size_t i = 0; i < kJoinBlocks / 100; ++i) {
    Store store{.tier = Tier::Gpu, .parent = {}, .keys = std::vector<keys::BlockKey>(100)};
    for (auto& key : store.keys) key = {rng.next() >> 3U};
    agent.take(i % kCaches, store);
  }
  const Events events(agent, nullptr, 20'000);
  for (int turn = 0; turn < 5; ++turn) {
    Replica replica(server);
    const Instant begin = system_clock().now();
    replica.follow();
    replica.await_verified();
    std::printf("join %d: %llu blocks proved after %.0f ms\n", turn + 1,
                static_cast<unsigned long long>(replica.timed.index.blocks_total()),
                ms_of(system_clock().now() - begin));
  }
}

}  // namespace
}  // namespace sightline

int main() {
  sightline::measure_lag();
  sightline::measure_join();
  return 0;
}
