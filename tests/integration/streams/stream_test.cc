// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The agent's end of a stream and three routers' ends, through the codec and over a network that
// loses messages. Both ends were written separately, by the same rules.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/replicas/follower/follower.h"
#include "router/replicas/frames/stream_codec.h"
#include "router/replicas/publisher/frame_publisher.h"

namespace sightline {
namespace {

using namespace std::chrono_literals;
using operations::Operation;
using operations::Tier;

constexpr char kWorker[] = "w0";

// The held blocks in the simplest form.
class PlainBlocks : public follower::HeldBlocks, public operations::OperationSink {
 public:
  void take(const operations::CacheName& /*cache*/, const Operation& operation) override {
    if (std::holds_alternative<operations::Clear>(operation)) blocks_.clear();
    if (const auto* stored = std::get_if<operations::Store>(&operation)) {
      for (const auto key : stored->keys) blocks_.emplace(key.value, stored->tier);
    }
    if (const auto* removed = std::get_if<operations::Remove>(&operation)) {
      for (const auto key : removed->keys) blocks_.erase({key.value, removed->tier});
    }
  }
  [[nodiscard]] operations::CacheDigest digest() const override {
    operations::CacheDigest digest;
    for (const auto& [key, tier] : blocks_) digest.of(tier).add({key});
    return digest;
  }
  [[nodiscard]] std::uint64_t refused() const override { return 0; }
  [[nodiscard]] std::optional<std::uint64_t> engine_blocks() const override { return {}; }
  [[nodiscard]] const std::set<std::pair<std::uint64_t, Tier>>& blocks() const { return blocks_; }

 private:
  std::set<std::pair<std::uint64_t, Tier>> blocks_;
};

struct Router {
  Router(std::string reader, std::uint64_t seed, Instant now)
      : name(std::move(reader)),
        follower({.stream = {.worker = kWorker}, .reader = name, .seed = seed, .options = {}}, held,
                 held, now) {}

  std::string name;
  PlainBlocks held;
  follower::FrameFollower follower;
};

publisher::PublisherOptions small_limits(Rng& rng) {
  publisher::PublisherOptions options;
  options.payload_bytes_max = 8'192;
  options.ring_bytes_max = 20'000;
  options.range_bytes_max = 8'000;
  options.dump.blocks_per_step = 200;
  options.dump.changed_max = 50 + rng.below(2'000);
  return options;
}

class Deployment {
 public:
  explicit Deployment(std::uint64_t seed)
      : rng_(seed),
        agent_({.worker = kWorker}, {.name = "agent", .number = 5}, small_limits(rng_),
               [this] { return rng_.next(); }) {
    for (int i = 0; i < 3; ++i) routers_.emplace_back("r" + std::to_string(i), rng_.next(), now_);
    facts_.health = operations::FeedHealth::Verified;
  }

  void do_something() {
    for (auto count = rng_.below(8); count > 0; --count) tell(any_operation());
    if (rng_.below(800) == 0) {
      tell(operations::Clear{});
      ++cache_.epoch;
    }
    facts_.caught_up = now_;
    if (rng_.below(10) == 0) agent_.tell(cache_, facts_, {}, now_);
    pass(std::chrono::microseconds(rng_.below(20'000)));
  }

  void rest() {
    loses_ = false;
    for (int i = 0; i < 4'000; ++i) {
      facts_.caught_up = now_;
      agent_.tell(cache_, facts_, {}, now_);
      pass(10ms);
    }
  }

  [[nodiscard]] const std::deque<Router>& routers() const { return routers_; }
  [[nodiscard]] const PlainBlocks& engine() const { return engine_; }

 private:
  Operation any_operation() {
    const auto tier = static_cast<Tier>(rng_.below(operations::kTierCount));
    const std::uint64_t from = rng_.below(3'000);
    std::vector<keys::BlockKey> keys;
    for (auto count = 1 + rng_.below(20); count > 0; --count) keys.push_back({from + keys.size()});
    if (rng_.below(3'000) == 0) return operations::Clear{};
    if (rng_.below(5) < 2) return operations::Remove{.tier = tier, .keys = std::move(keys)};
    operations::Store stored{.tier = tier, .parent = {}, .keys = std::move(keys)};
    if (from > 0) stored.parent = keys::BlockKey{from - 1};
    return stored;
  }

  void tell(const Operation& operation) {
    agent_.take(cache_, operation);
    engine_.take(cache_, operation);
  }

  bool is_lost() { return loses_ && rng_.below(20) == 0; }

  void pass(Duration time) {
    now_ += time;
    agent_.step(now_);
    deliver();
    for (Router& router : routers_) {
      for (const auto& body : router.follower.turn(now_)) {
        if (is_lost()) continue;
        const auto asked = frames::decode(frames::encode({{.worker = kWorker}, body}));
        ASSERT_TRUE(asked.ok());
        agent_.hear(*asked, now_);
      }
    }
    deliver();
  }

  void deliver() {
    for (const auto& sent : agent_.take_ready(now_)) {
      for (Router& router : routers_) {
        if ((!sent.reader.empty() && sent.reader != router.name) || is_lost()) continue;
        auto message = frames::decode(sent.payload);
        ASSERT_TRUE(message.ok());
        router.follower.hear(std::move(message->body), now_);
      }
    }
  }

  Rng rng_;
  Instant now_{std::chrono::hours(1)};
  publisher::FramePublisher agent_;
  std::deque<Router> routers_;
  PlainBlocks engine_;
  operations::CacheName cache_{.worker = kWorker, .rank = 0, .epoch = 1};
  operations::CacheFacts facts_;
  bool loses_ = true;
};

TEST(Stream, RoutersHoldTheEnginesBlocksAfterQuietDespiteLosses) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Deployment deployment(seed);
    for (int step = 0; step < 3'000; ++step) deployment.do_something();
    deployment.rest();
    EXPECT_FALSE(deployment.engine().blocks().empty()) << "of seed " << seed;
    for (const Router& router : deployment.routers()) {
      const auto facts = router.follower.facts();
      EXPECT_EQ(facts.health, operations::FeedHealth::Verified)
          << router.name << " of seed " << seed << ": " << facts.reason;
      EXPECT_EQ(router.held.blocks(), deployment.engine().blocks())
          << router.name << " of seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sightline
