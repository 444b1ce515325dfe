// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "router/cache/operations/digest.h"
#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"
#include "router/replicas/follower/agents.h"
#include "router/replicas/follower/dump_pull.h"
#include "router/replicas/follower/options.h"
#include "router/replicas/follower/retry.h"
#include "router/replicas/follower/statistics.h"
#include "router/replicas/follower/waiting_frames.h"
#include "router/replicas/frames/message.h"

namespace sightline::follower {

// What the follower's operations have led to. Called from within its methods, after
// what it gave to its sink.
class HeldBlocks {
 public:
  virtual ~HeldBlocks() = default;
  [[nodiscard]] virtual operations::CacheDigest digest() const = 0;
  // Blocks for which there was no room since the last Clear.
  [[nodiscard]] virtual std::uint64_t refused() const = 0;
  // That its engine has room for on the GPU; nothing: not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> engine_blocks() const = 0;
};

struct FollowerSetup {
  frames::StreamName stream;
  std::string reader;      // our name in the subject of answers
  std::uint64_t seed = 0;  // random: nonces are drawn from it
  FollowerOptions options = {};
  Duration to_wall{};  // from Instant to WallTime, for times that are shown
};

// The router's end of one stream. Opened messages and time in; operations, facts and asks out.
// Follows the one epoch whose agent answered a fresh question: begun by a dump, gaps filled by
// ranges, judged by the digests in it. Says Verified only while what is held is what the agent held
// at position(), and was so less than stale_after ago, as an answer to our own question proves;
// nothing applied is ahead of the agent. Whoever owns it calls
// turn() at deadline() and after every other call, and looks at facts() then. Operations are under
// the agent's epoch as CacheName::epoch. Memory is bounded by the options. Thread safety: none.
class FrameFollower {
 public:
  // held and sink outlive it.
  FrameFollower(FollowerSetup setup, HeldBlocks& held, operations::OperationSink& sink,
                Instant now);
  FrameFollower(const FrameFollower&) = delete;
  FrameFollower& operator=(const FrameFollower&) = delete;

  bool hear(frames::Body message, Instant now);  // false: it was dropped
  // Our connection to NATS. It counts as there at first.
  void nats_lost(Instant now);
  void nats_healed(Instant now);
  // What we sent then has come back through NATS. Never called: not known.
  void nats_fresh(Instant sent_at) { nats_fresh_at_ = sent_at; }
  // Messages were lost on our side, any number.
  void messages_lost(Instant now);

  // Asks the agent to look at its engine's events: facts().caught_up moves on.
  void look(Instant now);
  // What is held disagrees with the engine's answers. False: put off, as the last was not long ago,
  // or nothing is followed; to be said again.
  bool relearn(Instant now);

  // Asks for a dump although nothing is missing: there is room now for what was refused. While one
  // is to come, nothing.
  void ask_again(Instant now);

  // What is to be sent now, in this order. Where sending fails, they are asked again in time.
  std::vector<frames::Body> turn(Instant now);
  [[nodiscard]] Instant deadline() const;

  // health is Verified, or ToldBadly with the reason.
  [[nodiscard]] operations::CacheFacts facts() const;
  [[nodiscard]] FollowerStatus status() const;
  [[nodiscard]] const FollowerStatistics& statistics() const { return statistics_; }

 private:
  struct Followed {
    frames::Instance agent;
    std::uint64_t epoch = 0;
  };
  // Reached once the position is applied.
  struct CaughtUp {
    std::uint64_t seq = 0;
    Instant at{};
  };

  void hear_one(frames::Frame& frame, Instant now);
  void hear_one(frames::Bye& bye, Instant now);
  void hear_one(frames::Answer& answer, Instant now);
  void hear_one(frames::Offer& offer, Instant now);
  void hear_one(frames::Chunk& chunk, Instant now);
  void hear_one(frames::Gone& gone, Instant now);
  template <class Other>
  void hear_one(Other&, Instant) {
    drop(Drop::OtherReader);
  }

  void follow(const frames::Answer& answer, Instant asked_at, Instant now);
  void continue_with(const frames::Answer& answer, Instant asked_at, Instant now);
  void unfollow();
  void forget(Instant now);
  void start_dump(Instant now);
  void fail_dump(Instant now, std::string_view why = {});
  void apply_chunks(Instant now);
  void empty_held();
  void finish_dump(Instant now);
  void apply(const frames::Frame& frame, Instant now);
  void apply_waiting(Instant now);
  void note_head(std::uint64_t seq, Instant now);
  void settle_range(Instant now);
  void settle_caught_up();
  void judge(const frames::Beat& beat, Instant now);
  void judge_age(Instant now);
  void note_answer(const frames::Answer& answer, Instant asked_at);
  void urge(Instant now);
  void ask_question(Instant now, std::vector<frames::Body>& asks);
  void ask_range(Instant now, std::vector<frames::Body>& asks);
  void ask_dump(Instant now, std::vector<frames::Body>& asks);
  Duration part_of(Duration duration);
  frames::Freshness next_ask();
  void drop(Drop why) {
    ++statistics_.dropped[static_cast<std::size_t>(why)];
    is_dropped_ = true;
  }

  [[nodiscard]] bool is_settled() const { return followed_ && !agents_.is_contested(); }
  [[nodiscard]] bool has_gap() const { return position_ && *position_ < head_; }
  [[nodiscard]] std::string doubt() const;
  [[nodiscard]] std::string silence() const;
  [[nodiscard]] Instant silent_at() const;
  [[nodiscard]] bool is_dead() const;

  const frames::StreamName stream_;
  const std::string reader_;
  const FollowerOptions options_;
  const Duration to_wall_;
  HeldBlocks& held_;
  operations::OperationSink& sink_;
  Rng rng_;
  FollowerStatistics statistics_;

  Agents agents_;
  std::optional<Followed> followed_;
  std::optional<operations::CacheName> name_;  // of what is held; nothing: nothing is
  std::optional<std::uint64_t> position_;      // nothing: a dump is to come, or nothing is followed
  std::uint64_t head_ = 0;
  WaitingFrames waiting_;
  DumpPull pull_;
  std::string_view dump_trouble_;  // why the last dump was given up; empty: it was not

  std::optional<frames::Beat> state_;  // the last that was heard, applied or not
  std::uint64_t state_seq_ = 0;
  // When the newest question was asked that was answered: by anybody, and by an agent that hears
  // its engine. Messages that nobody asked for may be of any age.
  Instant answered_at_;
  Instant good_at_;
  bool was_good_ = false;
  bool is_stale_ = false;
  bool is_dropped_ = false;                   // what was heard last
  std::optional<frames::Instance> answered_;  // who answered last
  std::optional<Instant> dead_since_;         // that one; nothing: it lives, or NATS is to blame
  bool has_ended_ = false;                    // it said so
  Instant listening_since_;  // NATS was known to be well from then on, or nothing else is known
  std::optional<Instant> nats_fresh_at_;
  bool is_nats_late_ = false, is_silent_ = false;
  std::uint64_t asks_ = 0;
  bool is_doubted_ = true;  // until an equal digest
  std::optional<Instant> digest_equal_at_;
  std::optional<Instant> caught_up_;
  std::deque<CaughtUp> to_catch_up_;

  bool is_nats_away_ = false;
  bool is_look_wanted_ = false;
  bool is_relearn_wanted_ = false;
  std::optional<Instant> last_question_;
  Instant next_question_;
  Instant spread_until_{};  // nothing is asked before
  Duration question_pause_;
  Retry range_;
  std::uint64_t range_end_ = 0;  // the last position that was asked for
  Retry dump_;
  Retry relearn_;
  std::optional<Instant> last_relearn_;
};

}  // namespace sightline::follower
