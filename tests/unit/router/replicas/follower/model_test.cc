// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/replicas/follower/follower.h"
#include "tests/unit/router/replicas/follower/plain_agent.h"

namespace sightline::follower {
namespace {

using frames::Body;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::PlainAgent;
using test::PlainCache;

constexpr std::size_t kReaders = 3;
constexpr std::size_t kCapped = 2;  // this reader's index has no room for all
constexpr Duration kLateMax = seconds(8);

struct Reader {
  PlainCache held;
  std::unique_ptr<FrameFollower> follower;
  bool is_connected = true;
};

struct Running {
  PlainAgent agent;
  Instant next_beat;
};

struct Letter {
  std::optional<std::size_t> reader;  // nothing: to the agents
  Body body;
};

// Three followers and one agent, sometimes two, on a network that loses, repeats and delays
// messages. Each publisher records what each epoch held at each position.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed) {
    options_.waiting_bytes_max = 40'000;
    start_agent();
    for (std::size_t i = 0; i < kReaders; ++i) start_reader(i);
  }

  // One event. False: a rule is broken, see broken().
  bool step() {
    now_ = std::max(now_, next());
    if (!letters_.empty() && letters_.begin()->first <= now_) {
      deliver();
    } else if (next_fault_ <= now_) {
      next_fault_ = now_ + milliseconds(200 + rng_.below(2'600));
      fault();
    } else if (next_operation_ <= now_) {
      next_operation_ = now_ + milliseconds(5 + rng_.below(is_quiet_ ? 200 : 30));
      for (auto& running : agents_) publish(running, random_operations(), false);
    } else {
      beats_and_turns();
    }
    return broken_.empty();
  }

  void make_noise() {
    is_quiet_ = false;
    next_fault_ = now_;
    loss_ = 0.2 * rng_.unit();
    late_ = 0.05 * rng_.unit();
    for (auto& running : agents_) running.agent.ring_max = 1 + rng_.below(60);
  }
  void make_quiet() {
    is_quiet_ = true;
    next_fault_ = Instant::max();
    loss_ = 0;
    late_ = 0;
    while (agents_.size() > 1) end_agent(agents_.size() - 1);
    if (!agents_[0].agent.proved) begin_epoch(agents_[0]);
    agents_[0].agent.hearing = true;
    agents_[0].agent.ring_max = 200;
    for (std::size_t i = 0; i < kReaders; ++i) connect(i, true);
  }
  // Why the followers differ from the agent, apart from messages under way. Empty: they are equal.
  [[nodiscard]] std::string not_converged() const {
    const PlainAgent& agent = agents_[0].agent;
    for (std::size_t i = 0; i < kReaders; ++i) {
      const auto facts = readers_[i].follower->facts();
      if (!facts.reason.empty()) return std::to_string(i) + ": " + facts.reason;
      const auto status = readers_[i].follower->status();
      if (status.epoch != agent.epoch()) return std::to_string(i) + " follows another epoch";
      if (*status.position + 3 < agent.seq()) return std::to_string(i) + " is behind";
      if (facts.missing.no_room != (readers_[i].held.refused() > 0)) return "not said to be capped";
    }
    return {};
  }

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] std::uint64_t verified_checks() const { return verified_checks_; }
  // After count_all() also of followers that have ended.
  void count_all() {
    for (const auto& reader : readers_) count(reader.follower->statistics());
  }
  std::array<std::uint64_t, kDropCount> dropped{};
  std::uint64_t contests = 0;
  std::uint64_t dumps = 0;
  std::uint64_t gaps = 0;
  std::uint64_t forgotten = 0;

 private:
  [[nodiscard]] Instant next() const {
    Instant next = std::min(next_fault_, next_operation_);
    if (!letters_.empty()) next = std::min(next, letters_.begin()->first);
    for (const auto& running : agents_) next = std::min(next, running.next_beat);
    for (const auto& reader : readers_) next = std::min(next, reader.follower->deadline());
    return next;
  }

  void send(const std::optional<std::size_t>& reader, const Body& body) {
    if (rng_.unit() < loss_) return;
    const int copies = !is_quiet_ && rng_.below(20) == 0 ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      // In quiet times messages keep their order, as on a connection.
      Duration delay = is_quiet_ ? microseconds(500) : microseconds(100 + rng_.below(3'000));
      if (rng_.unit() < late_) delay = Duration(kLateMax.count() / 1'000 * rng_.below(1'000));
      letters_.emplace(now_ + delay, Letter{reader, body});
    }
  }

  void deliver() {
    const Letter letter = std::move(letters_.begin()->second);
    letters_.erase(letters_.begin());
    if (!letter.reader) {
      const std::size_t reader = reader_of(letter.body);
      for (auto& running : agents_) {
        for (const Body& answer : running.agent.hear(letter.body)) send(reader, answer);
      }
      return;
    }
    Reader& reader = readers_[*letter.reader];
    if (!reader.is_connected) return;
    reader.follower->hear(letter.body, now_);
    check(*letter.reader);
    turn(*letter.reader);
  }

  static std::size_t reader_of(const Body& ask) {
    std::string name;
    if (const auto* question = std::get_if<frames::StreamQuestion>(&ask)) name = question->reader;
    if (const auto* range = std::get_if<frames::RangeAsk>(&ask)) name = range->reader;
    if (const auto* dump = std::get_if<frames::DumpAsk>(&ask)) name = dump->reader;
    if (const auto* chunks = std::get_if<frames::ChunkAsk>(&ask)) name = chunks->reader;
    return name.empty() ? 0 : static_cast<std::size_t>(name[0] - '0');
  }

  void turn(std::size_t i) {
    for (const Body& ask : readers_[i].follower->turn(now_)) send(std::nullopt, ask);
    check(i);
    if (readers_[i].follower->deadline() <= now_) fail(i, "has more to do at once");
  }

  void beats_and_turns() {
    for (auto& running : agents_) {
      if (running.next_beat > now_) continue;
      running.next_beat = now_ + seconds(1);
      publish(running, {}, true);
    }
    for (std::size_t i = 0; i < kReaders; ++i) {
      if (readers_[i].follower->deadline() <= now_) turn(i);
    }
  }

  std::vector<operations::Operation> random_operations() {
    std::vector<operations::Operation> operations;
    const std::uint32_t count = 1 + rng_.below(2);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto tier = static_cast<operations::Tier>(rng_.below(operations::kTierCount));
      const std::uint64_t first = 1 + rng_.below(60);
      if (rng_.below(300) == 0) {
        operations.emplace_back(operations::Clear{});
      } else if (rng_.below(2) == 0) {
        operations.emplace_back(
            operations::Store{.tier = tier, .parent = {}, .keys = {{first}, {first + 1}}});
      } else {
        operations.emplace_back(
            operations::Remove{.tier = tier, .keys = {{first}, {first + 1}, {first + 2}}});
      }
    }
    return operations;
  }

  void publish(Running& running, std::vector<operations::Operation> operations, bool with_beat) {
    if (!running.agent.proved) return;
    const Body frame = running.agent.publish(std::move(operations), with_beat);
    history_[running.agent.epoch()].push_back(running.agent.cache.digest());
    for (std::size_t i = 0; i < kReaders; ++i) send(i, frame);
  }

  void start_agent() {
    ++drawn_;
    PlainAgent agent("agent " + std::to_string(drawn_), drawn_, 0);
    // Its engine may hold blocks at the beginning.
    if (rng_.below(2) == 0) agent.cache.apply(test::store({1, 2, 3, 4 + rng_.below(50)}));
    agent.ring_max = 1 + rng_.below(60);
    agents_.push_back({std::move(agent), now_ + milliseconds(rng_.below(1'000))});
    begin_epoch(agents_.back());
  }
  void begin_epoch(Running& running) {
    close_epoch(running);
    running.agent.proved = true;
    running.agent.begin(++drawn_ * 1'000'000);
    history_[running.agent.epoch()] = {running.agent.cache.digest()};
  }
  void close_epoch(const Running& running) { closed_.try_emplace(running.agent.epoch(), now_); }
  void end_agent(std::size_t i) {
    close_epoch(agents_[i]);
    agents_.erase(agents_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void start_reader(std::size_t i) {
    Reader& reader = readers_[i];
    if (reader.follower) count(reader.follower->statistics());
    reader.held = PlainCache(i == kCapped ? 15 : SIZE_MAX);
    FollowerSetup setup{{"w0", 0}, std::to_string(i), rng_.next(), options_};
    reader.follower =
        std::make_unique<FrameFollower>(std::move(setup), reader.held, reader.held, now_);
    reader.is_connected = true;
  }
  void count(const FollowerStatistics& statistics) {
    for (std::size_t i = 0; i < kDropCount; ++i) dropped[i] += statistics.dropped[i];
    contests += statistics.contests;
    dumps += statistics.dumps;
    gaps += statistics.gaps;
    forgotten += statistics.forgotten;
  }
  void connect(std::size_t i, bool is_connected) {
    if (readers_[i].is_connected == is_connected) return;
    readers_[i].is_connected = is_connected;
    if (is_connected) {
      readers_[i].follower->nats_healed(now_);
    } else {
      readers_[i].follower->nats_lost(now_);
    }
  }

  void fault() {
    const std::size_t a = rng_.below(static_cast<std::uint32_t>(agents_.size()));
    const std::size_t r = rng_.below(kReaders);
    Running& running = agents_[a];
    switch (rng_.below(12)) {
      case 0:  // it is killed, and another one starts
        end_agent(a);
        return start_agent();
      case 1:
        if (rng_.below(2) == 0) running.agent.cache.apply(operations::Clear{});
        return begin_epoch(running);
      case 2:
        if (agents_.size() < 2) start_agent();
        return;
      case 3:
        if (agents_.size() < 2) start_agent();
        for (std::size_t i = 0; i < kReaders; ++i) {
          send(i, frames::Bye{agents_[a].agent.instance.number});
        }
        return end_agent(a);
      case 4:
        running.agent.hearing = !running.agent.hearing;
        return;
      case 5:
        if (!running.agent.proved) return begin_epoch(running);
        close_epoch(running);
        running.agent.proved = false;
        return;
      case 6:
        return connect(r, !readers_[r].is_connected);
      case 7:
        return running.agent.forget_dumps();
      case 8:
        return start_reader(r);
      case 9:
        return readers_[r].follower->messages_lost(now_);
      case 10:
        return readers_[r].follower->look(now_);
      default:
        readers_[r].follower->relearn(now_);
    }
  }

  void check(std::size_t i) {
    const Reader& reader = readers_[i];
    const auto status = reader.follower->status();
    if (status.waiting_bytes > options_.waiting_bytes_max) fail(i, "keeps too much");
    const auto facts = reader.follower->facts();
    if (facts.health != operations::FeedHealth::Verified) return;
    ++verified_checks_;
    if (!status.epoch || !status.position) return fail(i, "has no position");
    const auto& digests = history_.at(*status.epoch);
    if (*status.position >= digests.size()) return fail(i, "is ahead of its agent");
    if (reader.held.name.epoch != *status.epoch) return fail(i, "names another epoch");
    if (i == kCapped) {
      if (!is_part(reader, *status.epoch, *status.position)) fail(i, "claims too much");
    } else if (digests[*status.position] != reader.held.digest()) {
      fail(i, "holds something else than its agent");
    }
    const auto closed = closed_.find(*status.epoch);
    if (closed == closed_.end()) return;
    if (now_ - closed->second > kLateMax + seconds(6)) fail(i, "believes an epoch that is over");
  }
  [[nodiscard]] bool is_part(const Reader& reader, std::uint64_t epoch, std::uint64_t seq) const {
    for (const auto& [agent, beat] : agents_) {
      const bool is_there = agent.epoch() == epoch && agent.seq() == seq;
      if (is_there && !reader.held.is_part_of(agent.cache)) return false;
    }
    return true;
  }
  void fail(std::size_t reader, const std::string& what) {
    broken_ = "reader " + std::to_string(reader) + " " + what;
  }

  Rng rng_;
  FollowerOptions options_;
  Instant now_ = Instant{} + seconds(100);
  Instant next_fault_ = Instant::max();
  Instant next_operation_ = now_;
  bool is_quiet_ = true;
  double loss_ = 0;
  double late_ = 0;
  std::vector<Running> agents_;
  std::array<Reader, kReaders> readers_;
  std::multimap<Instant, Letter> letters_;
  std::map<std::uint64_t, std::vector<operations::CacheDigest>> history_;
  std::map<std::uint64_t, Instant> closed_;
  std::uint64_t drawn_ = 0;
  std::uint64_t verified_checks_ = 0;
  std::string broken_;
};

constexpr std::uint64_t kSteps = 200'000;

// Other worlds in each round of --gtest_shuffle --gtest_repeat=N, for more steps.
bool has_other_worlds() { return GTEST_FLAG_GET(shuffle); }
std::uint64_t first_seed() {
  if (!has_other_worlds()) return 1;
  const int seed = ::testing::UnitTest::GetInstance()->random_seed();
  return 1 + 1'000 * static_cast<std::uint64_t>(seed);
}

TEST(FrameFollowerModel, VerifiedStateIsTrueAndQuietMakesAllEqual) {
  std::uint64_t steps = 0;
  std::uint64_t verified = 0;
  std::array<std::uint64_t, kDropCount> dropped{};
  std::uint64_t contests = 0;
  std::uint64_t dumps = 0;
  std::uint64_t forgotten = 0;
  for (std::uint64_t seed = first_seed(); steps < kSteps; ++seed) {
    Simulation world(seed);
    for (int phase = 0; phase < 3; ++phase) {
      world.make_noise();
      for (const Instant end = world.now() + seconds(90); world.now() < end; ++steps) {
        ASSERT_TRUE(world.step()) << "seed " << seed << ": " << world.broken();
      }
      world.make_quiet();
      for (const Instant end = world.now() + seconds(100); world.now() < end; ++steps) {
        ASSERT_TRUE(world.step()) << "seed " << seed << ": " << world.broken();
      }
      ASSERT_EQ(world.not_converged(), "") << "seed " << seed << " phase " << phase;
    }
    world.count_all();
    verified += world.verified_checks();
    for (std::size_t i = 0; i < kDropCount; ++i) dropped[i] += world.dropped[i];
    contests += world.contests;
    dumps += world.dumps;
    forgotten += world.forgotten;
  }
  RecordProperty("steps", std::to_string(steps));
  RecordProperty("verified", std::to_string(verified));
  RecordProperty("forgotten", std::to_string(forgotten));
  if (has_other_worlds()) return;  // the checks below are certain only for the first worlds
  // The rules were at work, so the test has checked something.
  EXPECT_GT(verified, kSteps / 8);
  EXPECT_GT(contests, 3U);
  EXPECT_GT(dumps, 20U);
  for (const Drop why : {Drop::OtherAgent, Drop::OtherEpoch, Drop::Repeated, Drop::StaleAnswer,
                         Drop::EndedAgent, Drop::OtherDump}) {
    EXPECT_GT(dropped[static_cast<std::size_t>(why)], 0U) << name_of(why);
  }
}

}  // namespace
}  // namespace sightline::follower
