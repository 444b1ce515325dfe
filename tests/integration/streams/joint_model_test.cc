// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The real ends of a stream against plain sets: three followers with real indexes, and one agent or
// two. The network loses, repeats and delays messages.
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"
#include "router/replicas/follower/follower.h"
#include "tests/integration/streams/joint_agent.h"

namespace sightline {
namespace {

using follower::FrameFollower;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Content;
using test::History;
using test::JointAgent;

constexpr std::size_t kReaders = 3;
constexpr std::size_t kCapped = 2;  // this reader's index has no room for all blocks
constexpr std::size_t kRoom = 25;   // its room, in keys
constexpr Duration kLateMax = seconds(8);
constexpr CacheId kCache{7};

constexpr std::array<char, kReaders> kNames = {'0', '1', '2'};

// A new name at each start of a router: its requests count from 1 on.
std::string name_of(std::size_t number, std::uint64_t seed) {
  return kNames.at(number) + ("-" + std::to_string(seed));
}

// A router's end, as a router has it.
class Reader final : public follower::HeldBlocks {
 public:
  Reader(std::size_t number, std::uint64_t seed, const follower::FollowerOptions& options,
         Instant now)
      : index(number == kCapped ? kRoom : 10'000),
        cache_(kCache, index, nullptr, index::Reclaim::Later),
        follower({{test::kJointWorker, 0}, name_of(number, seed), seed, options}, *this, cache_,
                 now) {}

  [[nodiscard]] operations::CacheDigest digest() const override { return index.digest(kCache); }
  [[nodiscard]] std::uint64_t refused() const override { return index.refused(kCache); }
  [[nodiscard]] std::optional<std::uint64_t> engine_blocks() const override { return {}; }
  [[nodiscard]] Content content() const {
    Content content;
    for (std::size_t t = 0; t < operations::kTierCount; ++t) {
      const auto tier = static_cast<operations::Tier>(t);
      for (const auto key : index.held(kCache, tier)) content.set(test::place_of(tier, key));
    }
    return content;
  }

  index::ExactIndex index;

 private:
  index::IndexedCache cache_;

 public:
  FrameFollower follower;
  bool is_connected = true;
};

operations::CacheDigest digest_of(const Content& content) {
  operations::CacheDigest digest;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (!content.test(i)) continue;
    digest.of(static_cast<operations::Tier>(i / test::kKeysMax)).add({i % test::kKeysMax});
  }
  return digest;
}

struct Letter {
  std::optional<std::size_t> reader;  // absent: to the agents
  std::string bytes;
};

struct Tally {
  std::uint64_t verified = 0;
  std::uint64_t compared = 0;  // of these, block by block
  std::uint64_t agents_capped = 0;
  std::array<std::uint64_t, follower::kDropCount> dropped{};
  std::uint64_t contests = 0;
  std::uint64_t dumps = 0;
  std::uint64_t dumps_anew = 0;
  std::uint64_t dumps_gone = 0;
  std::uint64_t ranges = 0;
  std::uint64_t ranges_gone = 0;
  std::uint64_t epochs = 0;
  std::uint64_t forgotten = 0;
  std::uint64_t unequal = 0;
  std::uint64_t chunks_asked_again = 0;
  std::uint64_t lost = 0;
  std::uint64_t twice = 0;
  std::uint64_t late = 0;

  void add(const follower::FollowerStatistics& statistics) {
    for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += statistics.dropped[i];
    contests += statistics.contests;
    dumps += statistics.dumps;
    forgotten += statistics.forgotten;
    unequal += statistics.digests_unequal;
    chunks_asked_again += statistics.chunks_asked_again;
  }
  void add(const publisher::PublisherStatistics& statistics) {
    dumps_anew += statistics.dumps_anew;
    dumps_gone += statistics.dumps_gone;
    ranges += statistics.ranges;
    ranges_gone += statistics.ranges_gone;
    epochs += statistics.epochs;
  }
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Tally& tally) : rng_(seed), tally_(tally) {
    options_.waiting_bytes_max = 40'000;
    options_.dropped_after = seconds(12);
    start_agent();
    for (std::size_t i = 0; i < kReaders; ++i) start_reader(i);
  }
  ~Simulation() {
    for (const auto& reader : readers_) tally_.add(reader->follower.statistics());
    for (const auto& agent : agents_) tally_.add(agent->statistics());
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Processes one event. Returns false if a rule is broken, see broken().
  bool step() {
    now_ = std::max(now_, next());
    if (!letters_.empty() && letters_.begin()->first <= now_) {
      deliver();
    } else if (next_fault_ <= now_) {
      next_fault_ = now_ + milliseconds(200 + rng_.below(2'600));
      fault();
    } else if (next_operation_ <= now_) {
      next_operation_ = now_ + milliseconds(5 + rng_.below(is_quiet_ ? 200 : 30));
      operate();
    } else if (next_facts_ <= now_) {
      next_facts_ = now_ + milliseconds(100);
      for (const auto& agent : agents_) agent->tell(now_);
    } else {
      work();
    }
    return broken().empty();
  }

  void make_noise() {
    is_quiet_ = false;
    next_fault_ = now_;
    loss_ = 0.2 * rng_.unit();
    late_ = 0.05 * rng_.unit();
    // A third of the time all messages are late, always by the same time.
    if (rng_.below(3) == 0) steady_delay_ = milliseconds(rng_.below(9'000));
  }
  void make_quiet() {
    is_quiet_ = true;
    next_fault_ = Instant::max();
    loss_ = 0;
    late_ = 0;
    steady_delay_ = {};
    while (agents_.size() > 1) end_agent(agents_.size() - 1);
    JointAgent& agent = *agents_[0];
    if (agent.is_lost()) agent.learn(engine_, now_);
    agent.hear_engine(true, now_);
    for (std::size_t i = 0; i < kReaders; ++i) connect(i, true);
  }
  // All followers are where the agent is, except for messages under way.
  [[nodiscard]] std::string not_converged() const {
    const JointAgent& agent = *agents_[0];
    if (agent.told() != engine_) return "the agent does not know its engine";
    for (std::size_t i = 0; i < kReaders; ++i) {
      const auto facts = readers_[i]->follower.facts();
      if (!facts.reason.empty()) return std::to_string(i) + ": " + facts.reason;
      const auto status = readers_[i]->follower.status();
      if (status.epoch != agent.epoch()) return std::to_string(i) + " follows another epoch";
      if (*status.position + 3 < agent.position()) return std::to_string(i) + " is behind";
      const bool is_capped = readers_[i]->refused() > 0 || agent.is_known_capped(now_);
      if (is_capped && !facts.missing.no_room) return "not said to be capped";
    }
    return {};
  }

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const std::string& broken() const {
    return broken_.empty() ? history_.broken : broken_;
  }

 private:
  [[nodiscard]] Instant next() const {
    Instant next = std::min({next_fault_, next_operation_, next_facts_});
    if (!letters_.empty()) next = std::min(next, letters_.begin()->first);
    for (const auto& agent : agents_) next = std::min(next, agent->due(now_));
    for (const auto& reader : readers_) next = std::min(next, reader->follower.deadline());
    return next;
  }

  void send(const std::optional<std::size_t>& reader, const std::string& bytes) {
    if (rng_.unit() < loss_) {
      ++tally_.lost;
      return;
    }
    const bool is_twice = !is_quiet_ && rng_.below(20) == 0;
    if (is_twice) ++tally_.twice;
    for (int i = 0; i < (is_twice ? 2 : 1); ++i) {
      // In quiet times, the order is that of a connection.
      Duration delay = is_quiet_ ? microseconds(500) : microseconds(100 + rng_.below(3'000));
      delay += steady_delay_;
      if (rng_.unit() < late_) {
        delay = Duration(kLateMax.count() / 1'000 * rng_.below(1'000));
        ++tally_.late;
      }
      letters_.emplace(now_ + delay, Letter{reader, bytes});
    }
  }
  void send(const std::vector<publisher::Outgoing>& all) {
    for (const auto& one : all) {
      for (std::size_t i = 0; i < kReaders; ++i) {
        const bool is_theirs = one.reader.empty() || one.reader.front() == kNames[i];
        if (is_theirs) send(i, one.payload);
      }
    }
  }

  void deliver() {
    const Letter letter = std::move(letters_.begin()->second);
    letters_.erase(letters_.begin());
    auto message = frames::decode(letter.bytes);
    if (!message.ok()) {
      broken_ = "a message that cannot be read";
    } else if (letter.reader) {
      Reader& reader = *readers_[*letter.reader];
      if (!reader.is_connected) return;
      reader.follower.hear(std::move(message->body), now_);
      check(*letter.reader);
      turn(*letter.reader);
    } else {
      for (const auto& agent : agents_) agent->hear(*message, now_);
      serve_agents();
    }
  }

  void turn(std::size_t i) {
    for (const auto& ask : readers_[i]->follower.turn(now_)) {
      send(std::nullopt, frames::encode({.stream = {.worker = test::kJointWorker}, .body = ask}));
    }
    check(i);
    if (readers_[i]->follower.deadline() <= now_) fail(i, "has more to do at once");
  }

  void work() {
    serve_agents();
    for (std::size_t i = 0; i < kReaders; ++i) {
      if (readers_[i]->follower.deadline() <= now_) turn(i);
      if (rng_.below(8) == 0) readers_[i]->index.reclaim_some();
    }
  }
  void serve_agents() {
    for (const auto& agent : agents_) {
      if (agent->take_relearn_wish() && !agent->is_lost()) agent->learn(engine_, now_);
      send(agent->ready(now_));
    }
  }

  operations::Operation random_operation() {
    const auto tier = static_cast<operations::Tier>(rng_.below(operations::kTierCount));
    if (rng_.below(300) == 0) return operations::Clear{};
    std::vector<keys::BlockKey> keys;
    const std::uint64_t first = rng_.below(test::kKeysMax);
    for (auto count = 1 + rng_.below(4); count > 0; --count) {
      keys.push_back({(first + keys.size()) % test::kKeysMax});
    }
    if (rng_.below(9) < 4) return operations::Remove{.tier = tier, .keys = std::move(keys)};
    operations::Store stored{.tier = tier, .parent = {}, .keys = std::move(keys)};
    if (first > 0 && rng_.below(2) == 0) stored.parent = keys::BlockKey{first - 1};
    return stored;
  }
  void operate() {
    for (auto count = 1 + rng_.below(3); count > 0; --count) {
      const auto operation = random_operation();
      test::apply(engine_, operation);
      for (const auto& agent : agents_) agent->take(operation);
    }
    serve_agents();
  }

  void start_agent() {
    agents_.push_back(std::make_unique<JointAgent>(++drawn_, rng_, history_));
    agents_.back()->learn(engine_, now_);
  }
  void end_agent(std::size_t i) {
    tally_.add(agents_[i]->statistics());
    agents_[i]->end(now_);
    agents_.erase(agents_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void start_reader(std::size_t i) {
    if (readers_[i]) tally_.add(readers_[i]->follower.statistics());
    readers_[i] = std::make_unique<Reader>(i, rng_.next(), options_, now_);
  }
  void connect(std::size_t i, bool is_connected) {
    Reader& reader = *readers_[i];
    if (std::exchange(reader.is_connected, is_connected) == is_connected) return;
    if (is_connected) {
      reader.follower.nats_healed(now_);
    } else {
      reader.follower.nats_lost(now_);
    }
  }

  void fault() {
    if (rng_.below(2) == 0) {
      fault_of_agent(rng_.below(static_cast<std::uint32_t>(agents_.size())));
    } else {
      fault_of_reader(rng_.below(kReaders));
    }
  }
  void fault_of_agent(std::size_t a) {
    JointAgent& agent = *agents_[a];
    switch (rng_.below(7)) {
      case 0:  // killed, and another one starts
        end_agent(a);
        return start_agent();
      case 1:  // the engine restarted
        engine_.reset();
        for (const auto& one : agents_) one->learn(engine_, now_);
        return;
      case 2:
        if (agents_.size() < 2) start_agent();
        return;
      case 3:
        if (agents_.size() < 2) start_agent();
        send(agents_[a]->bye(now_));
        return end_agent(a);
      case 4:
        return agent.hear_engine(!agent.hears_engine(), now_);
      case 5:
        if (agent.is_lost()) return agent.learn(engine_, now_);
        return agent.lose_continuity(now_);
      default:
        return agent.learn(engine_, now_);
    }
  }
  void fault_of_reader(std::size_t r) {
    Reader& reader = *readers_[r];
    switch (rng_.below(5)) {
      case 0:
        return connect(r, !reader.is_connected);
      case 1:
        return start_reader(r);
      case 2:
        return reader.follower.messages_lost(now_);
      case 3:
        return reader.follower.look(now_);
      default:
        reader.follower.relearn(now_);
    }
  }

  void check(std::size_t i) {
    const Reader& reader = *readers_[i];
    const auto status = reader.follower.status();
    if (status.waiting_bytes > options_.waiting_bytes_max) fail(i, "keeps too much");
    const auto facts = reader.follower.facts();
    if (facts.health != operations::FeedHealth::Verified) return;
    ++tally_.verified;
    if (!status.epoch || !status.position) return fail(i, "has no position");
    const auto place = history_.epochs.find(*status.epoch);
    if (place == history_.epochs.end()) return fail(i, "follows what never was");
    const History::Epoch& epoch = place->second;
    if (*status.position >= epoch.at.size()) return fail(i, "is ahead of its agent");
    check_content(i, epoch, *status.position);
    // The limit: what counts was true less than stale_after ago, even if messages are late.
    const Instant oldest = now_ - options_.stale_after - milliseconds(1);
    if (epoch.closed && *epoch.closed < oldest) fail(i, "believes an epoch that is over");
    const std::uint64_t next = *status.position + 1;
    if (next < epoch.since.size() && epoch.since[next] < oldest) fail(i, "believes what is old");
  }
  void check_content(std::size_t i, const History::Epoch& epoch, std::uint64_t position) {
    const Reader& reader = *readers_[i];
    const Content& truth = epoch.at[position];
    const bool is_capped = i == kCapped || epoch.is_agent_capped;
    if (!is_capped && reader.digest() != digest_of(truth)) {
      return fail(i, "holds something else than its agent");
    }
    if (epoch.is_agent_capped) ++tally_.agents_capped;
    if (!is_capped && rng_.below(8) != 0) return;
    ++tally_.compared;
    const Content held = reader.content();
    if ((held & ~truth).any()) fail(i, "claims what its agent did not hold");
    if (!is_capped && held != truth) fail(i, "lacks what its agent held");
  }
  void fail(std::size_t reader, const std::string& what) {
    broken_ = "reader " + std::to_string(reader) + " " + what;
  }

  Rng rng_;
  Tally& tally_;
  follower::FollowerOptions options_;
  Instant now_ = Instant{} + seconds(100);
  Instant next_fault_ = Instant::max();
  Instant next_operation_ = now_;
  Instant next_facts_ = now_;
  bool is_quiet_ = true;
  double loss_ = 0;
  double late_ = 0;
  Duration steady_delay_{};
  Content engine_;
  History history_;
  std::vector<std::unique_ptr<JointAgent>> agents_;
  std::array<std::unique_ptr<Reader>, kReaders> readers_;
  std::multimap<Instant, Letter> letters_;
  std::uint64_t drawn_ = 0;
  std::string broken_;
};

constexpr std::uint64_t kSteps = 300'000;

// Other worlds in each round of --gtest_shuffle --gtest_repeat=N, for more steps.
bool has_other_worlds() { return GTEST_FLAG_GET(shuffle); }
std::uint64_t first_seed() {
  if (!has_other_worlds()) return 1;
  const int seed = ::testing::UnitTest::GetInstance()->random_seed();
  return 1 + 1'000 * static_cast<std::uint64_t>(seed);
}

void run_for(Simulation& world, Duration time, std::uint64_t seed, std::uint64_t& steps) {
  for (const Instant end = world.now() + time; world.now() < end; ++steps) {
    ASSERT_TRUE(world.step()) << "seed " << seed << ": " << world.broken();
  }
}

// A dump is requested at most 45 s after the last request (dump_retry_max and half as much). A dump
// fails if its next frames have left a small ring meanwhile. The next request comes as late.
constexpr Duration kDumpPauseMax = seconds(45);
constexpr int kDumpsThatMayFail = 4;

void run_until_converged(Simulation& world, std::uint64_t seed, std::uint64_t& steps) {
  const Instant end = world.now() + kDumpsThatMayFail * kDumpPauseMax;
  while (!world.not_converged().empty() && world.now() < end && !::testing::Test::HasFatalFailure())
    run_for(world, seconds(1), seed, steps);
}

void expect_all_rules_at_work(const Tally& tally) {
  EXPECT_GT(tally.verified, kSteps / 10);
  EXPECT_GT(tally.compared, kSteps / 50);
  EXPECT_GT(tally.agents_capped, 100U);
  EXPECT_GT(tally.contests, 3U);
  EXPECT_GT(tally.dumps, 100U);
  EXPECT_GT(tally.dumps_anew, 5U);
  EXPECT_GT(tally.dumps_gone, 5U);
  EXPECT_GT(tally.ranges, 20U);
  EXPECT_GT(tally.ranges_gone, 20U);
  EXPECT_GT(tally.chunks_asked_again, 20U);
  EXPECT_GT(tally.forgotten, 0U);
  // Both ends agree on what a position is: no digest ever differed.
  EXPECT_EQ(tally.unequal, 0U);
  using follower::Drop;
  for (const Drop why : {Drop::OtherAgent, Drop::OtherEpoch, Drop::Repeated, Drop::StaleAnswer,
                         Drop::EndedAgent, Drop::OtherDump}) {
    EXPECT_GT(tally.dropped[static_cast<std::size_t>(why)], 0U) << name_of(why);
  }
}

TEST(StreamModel, VerifiedBlocksAreTheAgentsAndAllAgreeAfterQuiet) {
  std::uint64_t steps = 0;
  Tally tally;
  for (std::uint64_t seed = first_seed(); steps < kSteps && !HasFatalFailure(); ++seed) {
    Simulation world(seed, tally);
    for (int phase = 0; phase < 3 && !HasFatalFailure(); ++phase) {
      world.make_noise();
      run_for(world, seconds(60), seed, steps);
      world.make_quiet();
      run_for(world, seconds(70), seed, steps);
      run_until_converged(world, seed, steps);
      ASSERT_EQ(world.not_converged(), "") << "seed " << seed << " phase " << phase;
    }
  }
  if (!has_other_worlds()) expect_all_rules_at_work(tally);
  std::cout << steps << " steps, " << tally.verified << " times verified, " << tally.compared
            << " block by block; lost " << tally.lost << ", twice " << tally.twice << ", late "
            << tally.late << "; epochs " << tally.epochs << ", two agents " << tally.contests
            << ", dumps " << tally.dumps << " (anew " << tally.dumps_anew << ", gone "
            << tally.dumps_gone << "), ranges " << tally.ranges << " (gone " << tally.ranges_gone
            << "), chunks asked again " << tally.chunks_asked_again << ", forgotten "
            << tally.forgotten << ", with a capped agent " << tally.agents_capped << '\n';
}

}  // namespace
}  // namespace sightline
