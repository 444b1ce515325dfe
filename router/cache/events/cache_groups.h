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

// Cache groups of one rank that are known at a time; layers of one kind may fill several.
inline constexpr std::size_t kGroupsMax = 64;
// Of these, the ones that count; real engines have one or two. Each block costs a look at all.
inline constexpr std::size_t kCountingGroupsMax = 8;

// The cache groups that an engine's stores have named, and which of them count: those whose copy
// of a block proves that the block's whole prefix is held. These are full and MLA attention, and
// groups of unstated kind, which encodings before vLLM 0.22 have; without any such group, the only
// group there is.
//
// Only what is taken teaches: not the stores of other holders or of unknown media, and not those
// without content. Off the GPU, a store must name its group and kind: connectors leave them out.
// With more counting groups than are followed, none counts until clear(): what a group that is
// not followed evicts would still be claimed.
// Thread safety: none.
class CacheGroups {
 public:
  struct Learned {
    bool forget = false;   // other groups count from now on: what is held was proved otherwise
    bool refused = false;  // there is no room for the group of this store
  };
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
    // The only group may have been taken for want of another.
    const bool only_ceases = known_.size() == 1 && prefix_groups_ == 0;
    const bool is_added = counts_too && !known_.empty();
    known_.emplace(id, event.kind);
    if (counts_too) ++prefix_groups_;
    return {.forget = only_ceases || is_added};
  }
  void clear() { *this = CacheGroups(); }

  [[nodiscard]] bool counts(std::int64_t group) const {
    const auto found = known_.find(group);
    if (found == known_.end() || overflown_) return false;
    return holds_prefix(found->second) || known_.size() == 1;
  }
  // How many groups count.
  [[nodiscard]] std::size_t counting() const {
    if (overflown_) return 0;
    return prefix_groups_ == 0 && known_.size() == 1 ? 1 : prefix_groups_;
  }
  // The group that a store without a group is about; nothing: there are several, or none.
  [[nodiscard]] std::optional<std::int64_t> only() const {
    if (known_.size() != 1 || overflown_) return std::nullopt;
    return known_.begin()->first;
  }
  [[nodiscard]] bool has_uncounted() const { return known_.size() > counting(); }
  // A prefix may be lost though nothing of it was withdrawn from the groups that count: there are
  // others, or the only one holds no whole prefixes.
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
  std::size_t prefix_groups_ = 0;  // of these, holding prefixes
  bool overflown_ = false;         // a counting group found no room
};

}  // namespace sightline::events
