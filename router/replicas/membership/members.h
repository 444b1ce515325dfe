// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/membership/announcement.h"
#include "router/replicas/membership/fitness.h"

namespace sightline::membership {

// Limits on the members that are kept.
struct MembersOptions {
  // The most members with a proof. Further ones are counted and ignored.
  std::size_t members_max = 1024;
  // The most members without a proof. They are enough to show what does not fit.
  std::size_t unproven_max = 32;
  // The most former members whose last number is remembered. Recorded announcements of them then
  // count as repeated.
  std::size_t gone_max = 4'096;
  // Announcements come every 2 s. After this time two are lost and a third is late.
  Duration silent_after = std::chrono::seconds(6);
};

// Another process.
struct Member {
  // Its last announcement.
  Announcement told;
  std::optional<Unfit> unfit;  // nothing: it fits
  Proof proof = Proof::No;
  // When its last announcement came.
  Instant heard_at{};
};

// How a member has changed.
struct MemberChange {
  enum class Kind : std::uint8_t {
    Joined,
    // It fits now, or no longer fits, or does not fit for another reason.
    Changed,
    // It announced its end.
    Left,
    // It announced nothing for silent_after.
    Silent,
  };
  Kind kind = Kind::Joined;
  Member member;
};

// The other processes, by their announcements. A process with a proof of the identity key counts.
// Of the others a few are kept to show them. They never fit, and never take the place of one with a
// proof. A recorded announcement changes nothing.
// Thread safety: one thread at a time.
class Members {
 public:
  // `mine` is what this process announces.
  explicit Members(Announcement mine, MembersOptions options = {})
      : mine_(std::move(mine)), options_(options) {}

  // Replaces what this process announces, and compares all members with it. The changes come in any
  // order.
  std::vector<MemberChange> set_mine(Announcement mine);
  [[nodiscard]] const Announcement& mine() const { return mine_; }

  // Takes an announcement. Ignores our own, which has our instance. Returns the change, if there is
  // one.
  std::optional<MemberChange> hear(const Announcement& theirs, Proof proof, Instant now);
  // Removes the members that are silent for silent_after. Call it about once a second.
  std::vector<MemberChange> expire(Instant now);

  // The members by instance.
  [[nodiscard]] const std::map<std::uint64_t, Member>& all() const { return members_; }
  // How many members fit, by role.
  [[nodiscard]] std::array<std::size_t, kRoleCount> fit_counts() const;
  // How many members do not fit, in the order of kDifferences.
  [[nodiscard]] std::array<std::size_t, kDifferences.size()> unfit_counts() const;
  // Announcements with a proof for which there was no room.
  [[nodiscard]] std::uint64_t refused_total() const { return refused_; }
  // Announcements without a proof for which there was no room, or whose instance has a proof.
  [[nodiscard]] std::uint64_t unproven_total() const { return unproven_; }
  // Announcements with a proof whose number is not above the highest number of the same process.
  [[nodiscard]] std::uint64_t repeated_total() const { return repeated_; }

  // All members as a JSON array. It does not contain this process:
  // {"role","name","instance","scope","revision","model_digest","served_model","block_size",
  // "key_check","frames":[min,max],"admin_address","selection_address","started","generation",
  // "fits","difference","reason","heard_ms"}.
  [[nodiscard]] std::string json(Instant now) const;

 private:
  // Returns whether the announcement is new enough. Counts it otherwise.
  [[nodiscard]] bool admit_number(const Announcement& theirs, Proof proof);
  // Returns whether another member fits into the limits. Counts it otherwise.
  [[nodiscard]] bool admit_member(Proof proof);
  // Remembers the last number of a member that has left.
  void note_gone(const Member& member);

  Announcement mine_;
  MembersOptions options_;
  std::map<std::uint64_t, Member> members_;
  // Instance and last number.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> gone_;
  std::uint64_t refused_ = 0;
  std::uint64_t unproven_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace sightline::membership
