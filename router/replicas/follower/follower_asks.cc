// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <utility>

#include "router/replicas/follower/follower.h"

// What the follower requests, and when.
namespace sightline::follower {

namespace {

// The longest time that an agent takes to read its engine's events (PublisherOptions::look_for).
constexpr Duration kLookTime = std::chrono::seconds(1);

}  // namespace

std::vector<frames::Body> FrameFollower::turn(Instant now) {
  agents_.expire(now);
  judge_age(now);
  std::vector<frames::Body> asks;
  // After NATS returned, all routers would ask at the same moment. Each waits for a random time
  // first.
  if (is_nats_away_ || now < spread_until_) return asks;
  // A silent dump is dropped before requests are made, and its chunks are not requested again.
  if (pull_.is_silent(now)) fail_dump(now);
  ask_question(now, asks);
  // All other requests name the followed epoch.
  if (!followed_) return asks;
  ask_range(now, asks);
  ask_dump(now, asks);
  const std::size_t others = asks.size();
  pull_.ask(now, rng_, statistics_, asks);
  for (std::size_t i = others; i < asks.size(); ++i) {
    std::get<frames::ChunkAsk>(asks[i]).freshness = next_ask();
  }
  if (is_relearn_wanted_) {
    is_relearn_wanted_ = false;
    ++statistics_.relearn_asks;
    asks.push_back(
        frames::RelearnAsk{.reader = reader_, .epoch = followed_->epoch, .freshness = next_ask()});
  }
  return asks;
}

void FrameFollower::ask_question(Instant now, std::vector<frames::Body>& asks) {
  if (now - good_at_ >= options_.answer_late_after) urge(now);
  if (now < next_question_) return;
  const std::uint64_t nonce = rng_.next();
  agents_.asked(nonce, now);
  ++statistics_.questions;
  const bool is_look = std::exchange(is_look_wanted_, false);
  asks.push_back(frames::StreamQuestion{
      .nonce = nonce, .reader = reader_, .look = is_look, .freshness = next_ask()});
  // All is well since the last question, so the pause is short again.
  if (is_settled() && now - good_at_ < options_.answer_late_after) {
    question_pause_ = options_.question_pause_min;
  }
  last_question_ = now;
  question_pause_ = std::min(2 * question_pause_, options_.question_pause_max);
  Duration pause = question_pause_;
  if (agents_.is_contested()) pause = options_.question_every_contested;
  if (is_settled()) pause = options_.question_every;
  // Random, because otherwise the questions of all routers could fall together.
  next_question_ = now + pause + part_of(pause / 4);
  // The next question waits longer. If it were answered first, the answer to this one would count
  // as old.
  if (is_look) next_question_ += kLookTime;
}

// Requests name the followed agent, or the one that answered last. An agent answers only requests
// that name its own run.
frames::Freshness FrameFollower::next_ask() {
  return {.agent = followed_   ? followed_->agent.number
                   : answered_ ? answered_->number
                               : 0,
          .number = ++asks_};
}

// Moves the next question to the earliest permitted moment, because something must be known.
void FrameFollower::urge(Instant now) {
  const Instant at = last_question_ ? std::max(now, *last_question_ + question_pause_) : now;
  next_question_ = std::min(next_question_, at);
}

void FrameFollower::ask_range(Instant now, std::vector<frames::Body>& asks) {
  if (now < range_.due()) return;
  const std::uint64_t from = *position_ + 1;
  // A range ends before the frames that wait already.
  std::uint64_t to = waiting_.first() ? *waiting_.first() - 1 : head_;
  to = std::min(to, *position_ + options_.range_frames_max);
  range_.asked(now, rng_);
  range_end_ = to;
  ++statistics_.range_asks;
  asks.push_back(frames::RangeAsk{.reader = reader_,
                                  .epoch = followed_->epoch,
                                  .from = from,
                                  .to = to,
                                  .freshness = next_ask()});
}

void FrameFollower::ask_dump(Instant now, std::vector<frames::Body>& asks) {
  if (now < dump_.due()) return;
  dump_.asked(now, rng_);
  ++statistics_.dump_asks;
  asks.push_back(
      frames::DumpAsk{.reader = reader_, .epoch = followed_->epoch, .freshness = next_ask()});
}

Instant FrameFollower::deadline() const {
  Instant due = agents_.due();
  // At this time the facts change without a message: the stream becomes stale.
  if (!is_stale_) due = std::min(due, good_at_ + options_.stale_after);
  // From this time on the agent counts as silent, and perhaps as dead.
  if (answered_ && !is_silent_) due = std::min(due, silent_at());
  if (name_) due = std::min(due, good_at_ + options_.dropped_after);
  if (is_nats_away_) return due;
  Instant ask = next_question_;
  // A late answer makes a question due before next_question_, see ask_question().
  const Instant late = good_at_ + options_.answer_late_after;
  if (last_question_ && late < next_question_) {
    ask = std::min(ask, std::max(late, *last_question_ + question_pause_));
  }
  ask = std::min({ask, range_.due(), dump_.due(), pull_.due()});
  // A wanted resync is sent in the next turn, without a pause.
  if (is_relearn_wanted_) ask = {};
  return std::min(due, std::max(ask, spread_until_));
}

void FrameFollower::nats_lost(Instant) { is_nats_away_ = true; }

// All routers notice the return of NATS at the same moment. Each asks at a random time.
void FrameFollower::nats_healed(Instant now) {
  is_nats_away_ = false;
  spread_until_ = now + part_of(options_.heal_spread);
  // The time without NATS must not count as silence of the agent.
  listening_since_ = spread_until_;
  next_question_ = spread_until_;
  pull_.listen_anew(spread_until_);
}

void FrameFollower::messages_lost(Instant now) { urge(now); }

void FrameFollower::look(Instant now) {
  is_look_wanted_ = true;
  const Instant at =
      last_question_ ? std::max(now, *last_question_ + options_.question_pause_min) : now;
  next_question_ = std::min(next_question_, at);
}

bool FrameFollower::relearn(Instant now) {
  if (!position_) return false;
  // After a long quiet time, this is a new problem. It does not inherit the pause of the last one.
  if (last_relearn_ && now - *last_relearn_ >= 2 * options_.relearn_pause_max) relearn_.reset();
  if (!relearn_.may_ask(now)) {
    ++statistics_.relearn_put_off;
    return false;
  }
  relearn_.asked(now, rng_);
  last_relearn_ = now;
  is_relearn_wanted_ = true;
  return true;
}

Duration FrameFollower::part_of(Duration duration) {
  return Duration(static_cast<Duration::rep>(rng_.unit() * static_cast<double>(duration.count())));
}

std::string_view name_of(Drop drop) {
  switch (drop) {
    case Drop::OtherAgent:
      return "other-agent";
    case Drop::OtherEpoch:
      return "other-epoch";
    case Drop::Repeated:
      return "repeated";
    case Drop::NoRoom:
      return "no-room";
    case Drop::StaleAnswer:
      return "stale-answer";
    case Drop::EndedAgent:
      return "ended-agent";
    case Drop::OtherDump:
      return "other-dump";
    case Drop::Malformed:
      return "malformed";
    case Drop::OtherReader:
      return "other-reader";
    case Drop::TooMuch:
      return "too-much";
  }
  return "";
}

}  // namespace sightline::follower
