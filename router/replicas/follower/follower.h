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
#include "router/replicas/follower/agent_answers.h"
#include "router/replicas/follower/dump_pull.h"
#include "router/replicas/follower/options.h"
#include "router/replicas/follower/retry.h"
#include "router/replicas/follower/statistics.h"
#include "router/replicas/follower/waiting_frames.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::follower {

// What the index holds after the follower's operations. The follower calls it within its own
// methods, after it gave operations to its sink.
class HeldBlocks {
 public:
  virtual ~HeldBlocks() = default;
  [[nodiscard]] virtual operations::CacheDigest digest() const = 0;
  // Blocks that found no room since the last Clear.
  [[nodiscard]] virtual std::uint64_t refused() const = 0;
  // The blocks that the engine's GPU memory can hold. Absent: not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> engine_blocks() const = 0;
};

struct FollowerSetup {
  frames::StreamName stream;
  std::string reader;      // our name in the subject of replies
  std::uint64_t seed = 0;  // random, for the nonces of questions
  FollowerOptions options = {};
  Duration to_wall{};  // from Instant to WallTime, for shown times
};

// The router's end of one stream. It receives opened messages and produces operations, facts and
// requests. It follows one epoch: the one whose agent answered a fresh question. It begins with a
// dump, fills gaps by ranges and compares digests.
// facts() is Verified only while the held blocks are the agent's blocks at the applied position. An
// answer to our own question must prove this within stale_after. No applied state is ahead of the
// agent.
// The owner calls turn() at deadline() and after every other call, and then reads facts().
// Operations carry the agent's epoch as CacheName::epoch. The options limit the memory. Thread
// safety: one thread at a time.
class FrameFollower {
 public:
  // `held` and `sink` outlive the follower.
  FrameFollower(FollowerSetup setup, HeldBlocks& held, operations::OperationSink& sink,
                Instant now);
  FrameFollower(const FrameFollower&) = delete;
  FrameFollower& operator=(const FrameFollower&) = delete;

  // Takes a message of the stream. Returns false if it was dropped.
  bool hear(frames::Body message, Instant now);
  // The NATS connection was lost, or is back. At first it counts as connected.
  void nats_lost(Instant now);
  void nats_healed(Instant now);
  // A message that we sent to ourselves at this time has come back. If never called, nothing is
  // known.
  void nats_fresh(Instant sent_at) { nats_fresh_at_ = sent_at; }
  // Any number of messages was lost on our side.
  void messages_lost(Instant now);
  // Requests that the agent reads its engine's events, so facts().caught_up advances.
  void look(Instant now);
  // The held blocks contradict the engine's answers: requests a resync. Returns false if nothing is
  // followed, or too soon after the last one. The caller then tries again later.
  bool relearn(Instant now);
  // Requests a dump although nothing is missing, because there is room for refused blocks. Does
  // nothing if a dump is due or under way.
  void ask_again(Instant now);
  // Returns the requests to send now, in order. If sending fails, later turns repeat them.
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
  // The time that counts as caught up when the position is applied.
  struct CaughtUp {
    std::uint64_t seq = 0;
    Instant at{};
  };

  void hear_one(frames::Frame& frame, Instant now);
  void hear_one(frames::Bye& bye, Instant now);
  void hear_one(frames::StreamAnswer& answer, Instant now);
  void hear_one(frames::Offer& offer, Instant now);
  void hear_one(frames::DumpChunk& chunk, Instant now);
  void hear_one(frames::NotAvailable& gone, Instant now);
  template <class Other>
  void hear_one(Other&, Instant) {
    drop(Drop::OtherReader);
  }
  void follow(const frames::StreamAnswer& answer, Instant asked_at, Instant now);
  void continue_with(const frames::StreamAnswer& answer, Instant asked_at, Instant now);
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
  void note_answer(const frames::StreamAnswer& answer, Instant asked_at);
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
  std::optional<operations::CacheName> name_;  // of the held blocks, absent if no block is held.
  std::optional<std::uint64_t> position_;      // absent: no dump is applied.
  std::uint64_t head_ = 0;
  WaitingFrames waiting_;
  DumpPull pull_;
  std::string_view dump_trouble_;      // why the last dump failed, empty if it did not.
  std::optional<frames::Beat> state_;  // the newest beat, applied or not.
  std::uint64_t state_seq_ = 0;
  // When the newest answered question was sent: answered by any agent, and by one that receives its
  // engine's events. Messages without a question may have any age.
  Instant answered_at_;
  Instant good_at_;
  bool was_good_ = false;
  bool is_stale_ = false;
  bool is_dropped_ = false;                   // the last message.
  std::optional<frames::Instance> answered_;  // the agent that answered last.
  std::optional<Instant> dead_since_;         // that agent. Absent: it lives, or NATS is to blame.
  bool has_ended_ = false;                    // it sent a Bye.
  Instant listening_since_;                   // NATS is known to be well since then.
  std::optional<Instant> nats_fresh_at_;
  bool is_nats_late_ = false, is_silent_ = false;
  std::uint64_t asks_ = 0;
  bool is_doubted_ = true;  // until judge() or a dump ends it.
  std::optional<Instant> digest_equal_at_;
  std::optional<Instant> caught_up_;
  std::deque<CaughtUp> to_catch_up_;
  bool is_nats_away_ = false;
  bool is_look_wanted_ = false;
  bool is_relearn_wanted_ = false;
  std::optional<Instant> last_question_;
  Instant next_question_;
  Instant spread_until_{};  // no request is sent before this time.
  Duration question_pause_;
  Retry range_;
  std::uint64_t range_end_ = 0;  // the last requested position.
  Retry dump_;
  Retry relearn_;
  std::optional<Instant> last_relearn_;
};

}  // namespace sightline::follower
