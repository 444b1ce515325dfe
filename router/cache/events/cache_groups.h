// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "router/cache/operations/operation.h"
#include "router/cache/wire/kv_event.h"

namespace sightline::events {

// How many cache groups of one rank are known at a time. Layers of one kind may fill several
// groups.
inline constexpr std::size_t kGroupsMax = 64;
// How many of these groups may count. Real engines have one or two. Each block costs a look at all
// of these groups.
inline constexpr std::size_t kCountingGroupsMax = 8;

// The cache groups that an engine's stores named, and which of them count. A group counts if its
// copy of a block proves that the engine holds the block's whole prefix. These are groups of full
// and MLA attention, and groups without a kind, as in encodings before vLLM 0.22. Without any of
// them, a group counts if it is the only one.
//
// The class uses only stores that the router accepts. It ignores stores of other holders, of
// unknown media and without content. Off the GPU, a store must name its group and its kind, because
// connectors omit them. If more groups count than kCountingGroupsMax, no group counts until
// clear(). Otherwise blocks that a further group evicts would still be claimed.
// Thread safety: one thread at a time.
class CacheGroups {
 public:
  // What a store changed.
  struct Learned {
    // Other groups count from this store on. Earlier claims had another proof, so forget them.
    bool forget = false;
    // No room is left for the group of this store.
    bool refused = false;
  };
  // Records the group of a store.
  Learned learn(const wire::BlockStored& event) {
    if (!teaches(event)) return {};
    const auto id = event.group.value_or(0);
    if (known_.contains(id)) return {};
    const bool counts_too = holds_prefix(event.kind);
    const bool overflows = counts_too && prefix_groups_ >= kCountingGroupsMax;
    if (overflows || known_.size() >= kGroupsMax) {
      const bool is_first = counts_too && !overflown_;
      overflown_ |= counts_too;
      return {.forget = is_first, .refused = true};
    }
    // The only group may have counted because there was no other.
    const bool only_ceases = known_.size() == 1 && prefix_groups_ == 0;
    const bool is_added = counts_too && !known_.empty();
    known_.emplace(id, event.kind);
    if (counts_too) ++prefix_groups_;
    return {.forget = only_ceases || is_added};
  }
  void clear() { *this = CacheGroups(); }

  // Returns whether stores and removals of this group count.
  [[nodiscard]] bool counts(std::int64_t group) const {
    const auto found = known_.find(group);
    if (found == known_.end() || overflown_) return false;
    return holds_prefix(found->second) || known_.size() == 1;
  }
  // Returns how many groups count.
  [[nodiscard]] std::size_t counting() const {
    if (overflown_) return 0;
    return prefix_groups_ == 0 && known_.size() == 1 ? 1 : prefix_groups_;
  }
  // Returns the group that a store without a group belongs to. Empty if there are several groups,
  // or no group.
  [[nodiscard]] std::optional<std::int64_t> only() const {
    if (known_.size() != 1 || overflown_) return std::nullopt;
    return known_.begin()->first;
  }
  // Returns whether some known groups do not count.
  [[nodiscard]] bool has_uncounted() const { return known_.size() > counting(); }
  // Returns whether an engine may lose a prefix without a removal in the groups that count. That
  // happens if there are other groups, or if the only group holds no whole prefixes.
  [[nodiscard]] bool is_upper_bound() const {
    return has_uncounted() || (prefix_groups_ == 0 && !known_.empty());
  }

 private:
  static bool holds_prefix(wire::SpecKind kind) { return kind != wire::SpecKind::Other; }
  [[nodiscard]] bool teaches(const wire::BlockStored& event) const {
    if (!event.tier || event.remote || event.tokens.empty()) return false;
    if (event.tier == operations::Tier::Gpu) return event.group || known_.empty();
    return event.group && event.kind != wire::SpecKind::Unstated;
  }

  std::map<std::int64_t, wire::SpecKind> known_;
  // Number of known groups that hold whole prefixes.
  std::size_t prefix_groups_ = 0;
  // A group that would count found no room.
  bool overflown_ = false;
};

}  // namespace sightline::events
