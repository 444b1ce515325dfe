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

struct MembersOptions {
  // Others that are remembered; more are counted and left out.
  std::size_t members_max = 1024;
  // Of these, whose announcements prove nothing: enough to name what does not fit.
  std::size_t unproven_max = 32;
  // Those that are gone, of whom the last announcement's number is remembered.
  std::size_t gone_max = 4'096;
  // Announcements come every 2 s: two were lost, and a third is late.
  Duration silent_after = std::chrono::seconds(6);
};

struct Member {
  Announcement told;
  std::optional<Unfit> unfit;  // nothing: it fits
  Proof proof = Proof::No;
  Instant heard_at{};
};

// What has become of a member.
struct MemberChange {
  enum class Kind : std::uint8_t {
    Joined,
    Changed,  // it fits now and did not, or the other way round, or does not for another reason
    Left,     // it said so
    Silent,   // it said nothing for too long
  };
  Kind kind = Kind::Joined;
  Member member;
};

// Who else is there, by what they announce. Who has the identity key is believed. Of all others a
// few are named; they neither fit nor take the place of one that has it. An announcement that was
// recorded and comes again changes nothing. Thread safety: none.
class Members {
 public:
  explicit Members(Announcement mine, MembersOptions options = {})
      : mine_(std::move(mine)), options_(options) {}

  // Something of ours is another: all are compared anew. The changes come in any order.
  std::vector<MemberChange> set_mine(Announcement mine);
  [[nodiscard]] const Announcement& mine() const { return mine_; }

  // Our own announcement is known by its instance and changes nothing.
  std::optional<MemberChange> hear(const Announcement& theirs, Proof proof, Instant now);
  // Removes those that are silent for too long; to be called about each second.
  std::vector<MemberChange> expire(Instant now);

  // By instance.
  [[nodiscard]] const std::map<std::uint64_t, Member>& all() const { return members_; }
  // Those that fit, by role.
  [[nodiscard]] std::array<std::size_t, kRoleCount> fit_counts() const;
  // Those that do not, in the order of kDifferences.
  [[nodiscard]] std::array<std::size_t, kDifferences.size()> unfit_counts() const;
  // Announcements of members for which there was no room.
  [[nodiscard]] std::uint64_t refused_total() const { return refused_; }
  // Likewise of those that prove nothing.
  [[nodiscard]] std::uint64_t unproven_total() const { return unproven_; }
  // Announcements that are not newer than one that was heard of the same process.
  [[nodiscard]] std::uint64_t repeated_total() const { return repeated_; }

  // An array of all, ours not among them:
  // {"role","name","instance","revision","model_digest","served_model","block_size","key_check",
  //  "frames":[min,max],"admin_address","selection_address","started","generation",
  //  "fits","difference","reason","heard_ms"}.
  [[nodiscard]] std::string json(Instant now) const;

 private:
  [[nodiscard]] bool may_count(const Announcement& theirs, Proof proof);
  [[nodiscard]] bool has_room(Proof proof);
  void note_gone(const Member& member);

  Announcement mine_;
  MembersOptions options_;
  std::map<std::uint64_t, Member> members_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> gone_;  // instance and last number
  std::uint64_t refused_ = 0;
  std::uint64_t unproven_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace sightline::membership
