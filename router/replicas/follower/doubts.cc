// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// What the follower reports about its state, and why the worker's blocks do not count.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "router/replicas/follower/follower.h"

namespace sightline::follower {

Instant FrameFollower::silent_at() const {
  // Silence counts only while NATS was known to be well.
  return std::max(answered_at_, listening_since_) + options_.stale_after;
}

// Our own message came back through NATS long after the agent's last answer. So the agent is at
// fault, not NATS.
bool FrameFollower::is_dead() const {
  if (!answered_ || !is_silent_ || is_nats_away_ || is_nats_late_) return false;
  return !nats_fresh_at_ || *nats_fresh_at_ >= silent_at() - 2 * options_.question_every;
}

operations::CacheFacts FrameFollower::facts() const {
  operations::CacheFacts facts = state_ ? state_->facts : operations::CacheFacts{};
  facts.reason = doubt();
  // The sentence and the verdict agree: a reason is there exactly when the blocks do not count.
  facts.health =
      facts.reason.empty() ? operations::FeedHealth::Verified : operations::FeedHealth::ToldBadly;
  facts.draining = state_ && state_->draining;
  // Both ends may lack room. Then a missing block is no sign of an error.
  if (held_.refused() > 0 || (state_ && state_->capped)) facts.missing.no_room = true;
  facts.caught_up = caught_up_;
  return facts;
}

std::string FrameFollower::doubt() const {
  // The order matters: the first cause in the list explains those below it.
  if (is_stale_ && is_nats_away_)
    return "NATS cannot be reached: messages of its agent do not arrive";
  if (is_stale_ && is_nats_late_) {
    return "NATS is late: the state from its agent is older than replica.stale_after";
  }
  if (agents_.is_contested()) return agents_.contest();
  if (dead_since_) return silence();
  if (!followed_) {
    if (!answered_ || !state_) return "its agent has not answered";
    return state_->trouble.empty() ? "its agent has not proved that it has all KV events"
                                   : state_->trouble;
  }
  if (state_ && !state_->hearing) {
    return state_->trouble.empty() ? "its agent does not receive its KV events" : state_->trouble;
  }
  if (is_stale_) return "its agent's last answer is older than replica.stale_after";
  if (!position_ && !dump_trouble_.empty()) return std::string(dump_trouble_);
  if (!position_) return "its blocks are being loaded from its agent";
  if (has_gap()) return "messages of its agent are missing";
  if (is_doubted_) return "its blocks are not yet compared with its agent's digest";
  return {};
}

std::string FrameFollower::silence() const {
  // The log and the status endpoints show this sentence, so the time is absolute.
  const WallTime since{dead_since_->time_since_epoch() + to_wall_};
  const auto day = std::chrono::floor<std::chrono::days>(since);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(since - day)};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return "its agent " + answered_->name + " has been dead since " + text.data() +
         (has_ended_ ? ": it announced its end" : ": it does not answer, although NATS works");
}

FollowerStatus FrameFollower::status() const {
  FollowerStatus status;
  if (followed_) {
    status.agent = followed_->agent;
    status.epoch = followed_->epoch;
  }
  status.position = position_;
  status.head = head_;
  if (was_good_) status.good_beat_at = good_at_;
  status.dead_since = dead_since_;
  if (dead_since_) status.dead_agent = answered_->name;
  status.digest_equal_at = digest_equal_at_;
  if (state_) status.lag_by_stamp = state_->lag_by_stamp;
  status.agents = agents_.all();
  status.waiting_bytes = waiting_.bytes();
  return status;
}

}  // namespace sightline::follower
