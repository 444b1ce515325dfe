// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Random lives of an engine over a network that loses, repeats and reorders messages. Compares the
// blocks in the index with the blocks in the engine.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/cache/events/event_feed.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"
#include "tests/support/pack.h"

namespace sightline::events {
namespace {

constexpr CacheId kEngine{3};
constexpr std::uint64_t kBlocks = 24;  // a fixed tree, because hashes must be equal in every life

struct Simulation {
  bool replay = false;
  std::size_t buffer_messages_max = 0;  // of the engine's replay buffer
  std::uint32_t loss_percent = 0;
  std::uint32_t cut_percent = 0;  // of replays that end without an end
};

struct Published {
  std::uint64_t sequence = 0;
  Bytes payload;
};

// The cache of an engine, copy by copy, and the messages that announce its changes.
class Engine {
 public:
  explicit Engine(std::uint64_t seed) : rng_(seed) {
    for (std::uint64_t block = 1; block <= kBlocks; ++block) {
      parents_.push_back(rng_.below(static_cast<std::uint32_t>(block)));  // 0: the root
    }
  }

  // One random change and its message.
  Published act() {
    const auto kind = rng_.below(16);
    std::vector<pack::Value> events;
    if (kind < 9) events = compute(1 + rng_.below(kBlocks));
    if (kind >= 9 && kind < 14 && !copies_.empty()) events = evict();
    if (kind == 14) {
      copies_.clear();
      events = {pack::cleared()};
    }
    return publish(events);
  }
  Published publish(const std::vector<pack::Value>& events) {
    time_s_ += 1;
    Published message{.sequence = next_++, .payload = pack::batch(events, time_s_)};
    sent_.push_back(message);
    return message;
  }
  void restart() {
    copies_.clear();
    sent_.clear();
    next_ = 0;
  }

  [[nodiscard]] std::set<std::uint64_t> held() const {
    std::set<std::uint64_t> blocks;
    for (const auto& [block, count] : copies_) blocks.insert(block);
    return blocks;
  }
  [[nodiscard]] std::uint64_t parent(std::uint64_t block) const { return parents_[block - 1]; }
  [[nodiscard]] const std::deque<Published>& sent() const { return sent_; }
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  // A prompt that ends with this block. Computes the missing blocks. If all are there, computes the
  // last block again, which makes another copy.
  std::vector<pack::Value> compute(std::uint64_t last) {
    std::vector<std::uint64_t> path;
    for (auto block = last; block != 0; block = parent(block)) path.push_back(block);
    std::reverse(path.begin(), path.end());
    auto from = std::find_if(path.begin(), path.end(),
                             [this](auto block) { return !copies_.contains(block); });
    if (from == path.end()) --from;
    const std::vector<std::uint64_t> blocks(from, path.end());
    for (const auto block : blocks) ++copies_[block];
    const auto before = parent(blocks.front());
    return {pack::stored(blocks, before == 0 ? pack::nil() : pack::integer(before), blocks)};
  }

  // The tail of a chain first, as engines do.
  std::vector<pack::Value> evict() {
    std::vector<std::uint64_t> tails;
    for (const auto& [block, count] : copies_) {
      const bool is_parent = std::any_of(copies_.begin(), copies_.end(), [&](const auto& other) {
        return parent(other.first) == block;
      });
      if (!is_parent) tails.push_back(block);
    }
    const auto block = tails[rng_.below(static_cast<std::uint32_t>(tails.size()))];
    if (--copies_[block] == 0) copies_.erase(block);
    return {pack::removed({block})};
  }

  Rng rng_;
  std::vector<std::uint64_t> parents_;
  std::map<std::uint64_t, int> copies_;
  std::deque<Published> sent_;  // in this life
  std::uint64_t next_ = 0;
  double time_s_ = 0;
};

class Run {
 public:
  Run(const Simulation& world, std::uint64_t seed) : world_(world), rng_(seed), engine_(seed + 1) {
    ask(feed_.start());
  }

  void step() {
    const auto kind = rng_.below(20);
    if (kind < 12) deliver(engine_.act());
    if (kind == 12) connected_ = false;
    if (kind == 13 && !connected_) connect();
    if (kind == 14 && rng_.below(4) == 0) {
      connected_ = false;
      engine_.restart();
    }
    if (kind > 14) serve_replay();
  }

  // No message is lost any more, and all pending work is done.
  void settle() {
    world_.loss_percent = world_.cut_percent = 0;
    if (!connected_) connect();
    deliver(engine_.publish({}));
    for (int i = 0; i < 200; ++i) serve_replay();
  }

  // Blocks that are claimed but that the engine does not hold, after all its messages were
  // received.
  [[nodiscard]] std::set<std::uint64_t> false_claims() const {
    if (!is_verified() || is_behind()) return {};
    std::set<std::uint64_t> wrong;
    const auto truth = engine_.held();
    for (const auto block : claimed()) {
      if (!truth.contains(block)) wrong.insert(block);
    }
    return wrong;
  }
  [[nodiscard]] bool is_verified() const { return connected_ && !feed_.replaying(); }
  [[nodiscard]] std::set<std::uint64_t> claimed() const {
    std::set<std::uint64_t> blocks;
    const auto held = index_.held(kEngine, operations::Tier::Gpu);
    for (std::uint64_t block = 1; block <= kBlocks; ++block) {
      if (std::binary_search(held.begin(), held.end(), key_of(block))) blocks.insert(block);
    }
    EXPECT_EQ(blocks.size(), held.size());
    return blocks;
  }
  [[nodiscard]] const Engine& engine() const { return engine_; }

 private:
  [[nodiscard]] keys::BlockKey key_of(std::uint64_t block) const {
    const auto before = engine_.parent(block);
    const auto from = before == 0 ? scheme_.root({.model = "m"}) : key_of(before);
    return scheme_.next(from, scheme_.local(std::vector<TokenId>{static_cast<TokenId>(block)}, {}));
  }
  // Whether messages of this life have not been applied.
  [[nodiscard]] bool is_behind() const {
    const auto applied = feed_.status().facts.sequence;
    return engine_.next() > (applied ? *applied + 1 : 0);
  }

  void connect() {
    connected_ = true;
    late_.reset();
    ask(feed_.reconnected(true, WallTime{}));
  }

  void deliver(const Published& message) {
    if (!connected_ || rng_.below(100) < world_.loss_percent) return;
    if (rng_.below(12) == 0 && !late_) {
      late_ = message;  // arrives after the next one
      return;
    }
    live(message);
    if (rng_.below(12) == 0) live(message);
    if (late_) live(*std::exchange(late_, std::nullopt));
  }
  void live(const Published& message) {
    const Bytes topic = {'t'};
    const auto number = replay_start(message.sequence);
    ask(feed_.live(std::vector<ByteView>{topic, number, message.payload}, WallTime{}));
  }

  void ask(std::optional<std::uint64_t> from) {
    if (!from) return;
    asked_ = from;
    answers_.clear();
  }
  // The engine receives the request, or gives one answer to it.
  void serve_replay() {
    if (!feed_.replaying() || !connected_) return;
    if (asked_) {
      for (const auto& message : engine_.sent()) {
        const bool is_kept = message.sequence + world_.buffer_messages_max >= engine_.next();
        if (is_kept && message.sequence >= *asked_) answers_.push_back(message);
      }
      asked_.reset();
      return;
    }
    if (rng_.below(100) < world_.cut_percent) {
      answers_.clear();
      ask(feed_.replay_timed_out(WallTime{}));
      return;
    }
    const Bytes none;
    const Bytes end(8, 0xff);
    if (answers_.empty()) {
      ask(feed_.replayed(std::vector<ByteView>{none, none, end, none}, WallTime{}));
      return;
    }
    const auto answer = answers_.front();
    answers_.pop_front();
    const auto number = replay_start(answer.sequence);
    ask(feed_.replayed(std::vector<ByteView>{none, none, number, answer.payload}, WallTime{}));
  }

  Simulation world_;
  Rng rng_;
  Engine engine_;
  keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  test::IndexedFeed feed_{
      {.id = kEngine, .model = "m"}, {.replay_available = world_.replay}, scheme_, index_};
  bool connected_ = true;
  std::optional<Published> late_;
  std::optional<std::uint64_t> asked_;
  std::deque<Published> answers_;
};

void expect_no_false_claims(const Simulation& world, bool learns_all) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Run run(world, seed);
    for (int step = 0; step < 300; ++step) {
      run.step();
      ASSERT_EQ(run.false_claims(), std::set<std::uint64_t>{}) << "step " << step;
    }
    run.settle();
    ASSERT_TRUE(run.is_verified());
    ASSERT_EQ(run.false_claims(), std::set<std::uint64_t>{});
    if (learns_all) {
      ASSERT_EQ(run.claimed(), run.engine().held());
    }
  }
}

TEST(FeedTruth, ReplayRestoresTheTruthAfterAnyLoss) {
  expect_no_false_claims({.replay = true, .buffer_messages_max = 10'000, .loss_percent = 15}, true);
}

TEST(FeedTruth, WithAShortReplayBufferNothingIsClaimedFalsely) {
  expect_no_false_claims({.replay = true, .buffer_messages_max = 4, .loss_percent = 15}, false);
}

TEST(FeedTruth, WithReplaysThatBreakOffNothingIsClaimedFalsely) {
  expect_no_false_claims(
      {.replay = true, .buffer_messages_max = 10'000, .loss_percent = 15, .cut_percent = 20},
      false);
}

TEST(FeedTruth, WithoutReplayNothingIsClaimedFalsely) {
  expect_no_false_claims({.loss_percent = 10}, false);
}

TEST(FeedTruth, WithoutLossesNothingNeedsAReplay) { expect_no_false_claims({}, false); }

}  // namespace
}  // namespace sightline::events
