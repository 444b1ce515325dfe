// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/members.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::membership {
namespace {

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
    auto unfit = why_unfit(mine_, member.told);
    if (unfit == member.unfit) continue;
    member.unfit = std::move(unfit);
    changes.push_back({MemberChange::Kind::Changed, member});
  }
  return changes;
}

std::optional<MemberChange> Members::hear(const Announcement& theirs, Instant now) {
  using Kind = MemberChange::Kind;
  if (theirs.instance == mine_.instance) return std::nullopt;
  auto place = members_.find(theirs.instance);
  const bool is_new = place == members_.end();
  if (theirs.leaving) {
    if (is_new) return std::nullopt;
    MemberChange change{Kind::Left, std::move(place->second)};
    members_.erase(place);
    return change;
  }
  if (is_new) {
    if (members_.size() >= options_.members_max) {
      ++refused_;
      return std::nullopt;
    }
    place = members_.emplace(theirs.instance, Member{}).first;
  }
  Member& member = place->second;
  auto unfit = why_unfit(mine_, theirs);
  const bool changed = unfit != member.unfit;
  member = {theirs, std::move(unfit), now};
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
