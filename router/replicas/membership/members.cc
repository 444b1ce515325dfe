// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/members.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::membership {
namespace {

// Empty values are null, so readers see that they are not set.
std::string field(std::string_view name, std::string_view text) {
  return json::to_quoted(name) + ":" + (text.empty() ? "null" : json::to_quoted(text));
}

std::string field(std::string_view name, std::uint64_t count) {
  return json::to_quoted(name) + ":" + (count == 0 ? "null" : std::to_string(count));
}

std::string member_json(const Member& member, Instant now) {
  const Announcement& told = member.told;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - member.heard_at);
  return "{" + field("role", name_of(told.role)) + "," + field("name", told.name) + "," +
         field("instance", to_hex(told.instance)) + "," + field("scope", told.scope) + "," +
         field("revision", told.revision) + "," + field("model_digest", told.model_digest) + "," +
         field("served_model", told.served_model) + "," + field("block_size", told.block_size) +
         "," + field("key_check", told.key_check) + R"(,"frames":[)" +
         std::to_string(told.frames.min) + "," + std::to_string(told.frames.max) + "]," +
         field("admin_address", told.admin_address) + "," +
         field("selection_address", told.selection_address) + R"(,"started":)" +
         std::to_string(told.started) + "," + field("generation", told.generation) + R"(,"fits":)" +
         (member.unfit ? "false" : "true") + "," +
         field("difference", member.unfit ? name_of(member.unfit->difference) : "") + "," +
         field("reason", member.unfit ? member.unfit->reason : "") + R"(,"heard_ms":)" +
         std::to_string(age.count()) + "}";
}

}  // namespace

std::vector<MemberChange> Members::set_mine(Announcement mine) {
  mine_ = std::move(mine);
  std::vector<MemberChange> changes;
  for (auto& [instance, member] : members_) {
    auto unfit = why_unfit(mine_, member.told, member.proof);
    // The reason contains our values, so it can change although the difference stays.
    if (unfit == member.unfit) continue;
    member.unfit = std::move(unfit);
    changes.push_back({MemberChange::Kind::Changed, member});
  }
  return changes;
}

// An announcement of a present or former member must be newer than its last one.
bool Members::admit_number(const Announcement& theirs, Proof proof) {
  const auto known = members_.find(theirs.instance);
  const bool is_known_proven = known != members_.end() && known->second.proof == Proof::Yes;
  if (proof == Proof::No) {
    // An attacker without the key must not replace the announcement of a real process.
    if (is_known_proven) ++unproven_;
    return !is_known_proven;
  }
  std::uint64_t last = is_known_proven ? known->second.told.number : 0;
  const auto gone = std::find_if(gone_.begin(), gone_.end(),
                                 [&](const auto& one) { return one.first == theirs.instance; });
  if (gone != gone_.end()) last = std::max(last, gone->second);
  if (theirs.number <= last) ++repeated_;
  return theirs.number > last;
}

bool Members::admit_member(Proof proof) {
  const auto unproven =
      static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), [](const auto& one) {
        return one.second.proof == Proof::No;
      }));
  // Members without a proof never use the room of others.
  if (proof == Proof::No && unproven >= options_.unproven_max) {
    ++unproven_;
    return false;
  }
  if (members_.size() - unproven >= options_.members_max) {
    ++refused_;
    return false;
  }
  return true;
}

void Members::note_gone(const Member& member) {
  // Without a proof, the number proves nothing.
  if (member.proof == Proof::No) return;
  std::erase_if(gone_, [&](const auto& one) { return one.first == member.told.instance; });
  gone_.emplace_back(member.told.instance, member.told.number);
  if (gone_.size() > options_.gone_max) gone_.pop_front();
}

std::optional<MemberChange> Members::hear(const Announcement& theirs, Proof proof, Instant now) {
  using Kind = MemberChange::Kind;
  if (theirs.instance == mine_.instance || !admit_number(theirs, proof)) return std::nullopt;
  auto place = members_.find(theirs.instance);
  const bool is_new = place == members_.end();
  if (theirs.leaving) {
    Member last{.told = theirs, .unfit = {}, .proof = proof, .heard_at = now};
    // Also of a process that was never a member: its earlier announcements may arrive later.
    note_gone(last);
    if (is_new) return std::nullopt;
    MemberChange change{Kind::Left, std::move(place->second)};
    members_.erase(place);
    return change;
  }
  if (is_new) {
    if (!admit_member(proof)) return std::nullopt;
    place = members_.emplace(theirs.instance, Member{}).first;
  }
  Member& member = place->second;
  auto unfit = why_unfit(mine_, theirs, proof);
  const bool changed = unfit != member.unfit;
  member = {theirs, std::move(unfit), proof, now};
  if (!is_new && !changed) return std::nullopt;
  return MemberChange{is_new ? Kind::Joined : Kind::Changed, member};
}

std::vector<MemberChange> Members::expire(Instant now) {
  std::vector<MemberChange> changes;
  for (auto place = members_.begin(); place != members_.end();) {
    if (now - place->second.heard_at < options_.silent_after) {
      ++place;
      continue;
    }
    // A recording of its last announcements must not bring it back.
    note_gone(place->second);
    changes.push_back({MemberChange::Kind::Silent, std::move(place->second)});
    place = members_.erase(place);
  }
  return changes;
}

std::array<std::size_t, kRoleCount> Members::fit_counts() const {
  std::array<std::size_t, kRoleCount> counts{};
  for (const auto& [instance, member] : members_) {
    if (!member.unfit) ++counts.at(static_cast<std::size_t>(member.told.role));
  }
  return counts;
}

std::array<std::size_t, kDifferences.size()> Members::unfit_counts() const {
  std::array<std::size_t, kDifferences.size()> counts{};
  for (const auto& [instance, member] : members_) {
    if (member.unfit) ++counts.at(static_cast<std::size_t>(member.unfit->difference));
  }
  return counts;
}

std::string Members::json(Instant now) const {
  std::string out = "[";
  for (const auto& [instance, member] : members_) {
    if (out.size() > 1) out += ",";
    out += member_json(member, now);
  }
  return out + "]";
}

}  // namespace sightline::membership
