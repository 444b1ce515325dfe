// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/member_exchange.h"

#include <algorithm>
#include <utility>

namespace sightline::membership {

MemberExchange::MemberExchange(Announcement mine, SubjectOf subject_of,
                               const envelope::Sealer& sealer, MemberExchangeOptions options)
    : subject_of_(std::move(subject_of)),
      sealer_(sealer),
      options_(options),
      members_(std::move(mine), options.members) {}

void MemberExchange::set_mine(Announcement mine, Instant now) {
  const Announcement& before = members_.mine();
  // The subjects and the identity of this process are fixed.
  mine.role = before.role;
  mine.instance = before.instance;
  mine.scope = before.scope;
  mine.revision = before.revision;
  if (mine == before) return;
  for (MemberChange& change : members_.set_mine(std::move(mine))) note(std::move(change));
  hurry(now);
}

void MemberExchange::connected(Instant now) { hurry(now); }

void MemberExchange::hear(std::string_view subject, std::string_view payload, Instant now) {
  const Proof proof = is_proven(payload, subject, sealer_) ? Proof::Yes : Proof::No;
  // Anyone may send announcements without a proof, and parsing them costs work.
  if (proof == Proof::No && !spend_unproven_read(now)) {
    ++unread_;
    return;
  }
  const auto theirs = decode(payload);
  // NATS permissions limit on which subjects a process may write. So an announcement must be about
  // the revision of its subject.
  if (!theirs.ok() || subject_of_(*theirs) != subject) {
    ++malformed_;
    return;
  }
  auto change = members_.hear(*theirs, proof, now);
  if (!change) return;
  // The new member receives our announcement sooner.
  if (change->kind == MemberChange::Kind::Joined) hurry(now);
  note(std::move(*change));
}

MemberExchange::Actions MemberExchange::turn(Instant now) {
  Actions turn;
  if (now >= next_look_) {
    // The limit on logged changes counts from look to look.
    next_look_ = now + options_.interval / 2;
    turn.changes_left_out = std::exchange(left_out_, 0);
    told_ = 0;
    for (MemberChange& change : members_.expire(now)) note(std::move(change));
  }
  if (now >= next_announcement_) {
    last_announcement_ = now;
    next_announcement_ = now + options_.interval;
    turn.announcement = announce(members_.mine());
  }
  turn.changes = std::exchange(changes_, {});
  return turn;
}

Instant MemberExchange::due() const {
  if (!changes_.empty()) return {};
  return std::min(next_announcement_, next_look_);
}

std::string MemberExchange::farewell() {
  Announcement last = members_.mine();
  last.leaving = true;
  return announce(std::move(last));
}

std::string MemberExchange::announce(Announcement announcement) {
  announcement.number = ++number_;
  return encode(announcement, subject_of_(announcement), sealer_);
}

bool MemberExchange::spend_unproven_read(Instant now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    unproven_ = 0;
  }
  return ++unproven_ <= options_.unproven_max;
}

void MemberExchange::note(MemberChange change) {
  if (told_ >= options_.changes_max) {
    ++left_out_;
    return;
  }
  ++told_;
  changes_.push_back(std::move(change));
}

// A thousand new members do not cause a thousand announcements.
void MemberExchange::hurry(Instant now) {
  const Instant earliest =
      last_announcement_ ? std::max(now, *last_announcement_ + options_.pause) : now;
  next_announcement_ = std::min(next_announcement_, earliest);
}

}  // namespace sightline::membership
