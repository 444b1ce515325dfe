// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/normaliser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace sightline::events {

namespace {

constexpr std::array kTiers = {operations::Tier::Gpu, operations::Tier::Cpu,
                               operations::Tier::Storage};

std::size_t slot_of(operations::Tier tier) { return static_cast<std::size_t>(tier); }

// Text has token ids below this. 0 allows any.
TokenId vocabulary_of(const NormaliserOptions& options) {
  const auto sentinels = options.format->event_rules().sentinels_from;
  if (!sentinels) return options.vocabulary_size;
  const auto below = static_cast<TokenId>(*sentinels);
  return options.vocabulary_size == 0 ? below : std::min(options.vocabulary_size, below);
}

}  // namespace

Normaliser::Normaliser(NormaliserOptions options, const keys::Scheme& scheme,
                       operations::OperationSink& sink)
    : options_(std::move(options)),
      rules_(options_.format->event_rules()),
      sink_(sink),
      cache_(options_.cache),
      content_({.model = options_.model,
                .media = {.all = options_.media_tokens, .runs = options_.run_tokens},
                .vocabulary_size = vocabulary_of(options_)},
               scheme),
      handles_(0, EngineHashing(options_.hash_seed)),
      handle_bytes_(options_.handle_bytes),
      open_items_(0, EngineHashing(options_.hash_seed)),
      waiting_(options_.waiting) {}

void Normaliser::apply(const EventBatch& batch) {
  batch_time_s_ = batch.timestamp_s;
  handles_allowed_ =
      std::min(options_.handles_max, handles_.size() + handle_bytes_.room() / kHandleBytes);
  // Learns all groups of a batch first. A hybrid model announces a block once per group, and
  // whether a group counts depends on the others.
  for (const auto& event : batch.events) {
    const auto* stored = std::get_if<BlockStored>(&event);
    if (stored != nullptr) learn_group(*stored);
  }
  for (const auto& event : batch.events) {
    ++statistics_.events;
    if (ignoring_) {
      ++statistics_.ignored_block_size;
      continue;
    }
    std::visit([this](const auto& known) { apply_event(known); }, event);
  }
  settle_handle_bytes();
}

// Other threads may have used the memory that was free when the batch began. The batch's handles
// exist by now, so they are charged, and the next batch finds less room.
void Normaliser::settle_handle_bytes() {
  const std::size_t bytes = handles_.size() * kHandleBytes;
  if (bytes <= handle_bytes_.bytes()) {
    handle_bytes_.remove(handle_bytes_.bytes() - bytes);
  } else {
    handle_bytes_.charge(bytes - handle_bytes_.bytes());
  }
}

void Normaliser::reset() {
  to_store_ = {};  // the rest of a batch that got no memory
  forget(false);
  groups_.clear();
  content_.forget_encoding();
  block_size_seen_.reset();
  is_paired_ = false;
  ignoring_ = false;
  settle_handle_bytes();
}

std::optional<std::uint32_t> Normaliser::block_size() const {
  return block_size_seen_ ? block_size_seen_ : options_.block_size_configured;
}

void Normaliser::tell(operations::Operation operation) { sink_.take(cache_, operation); }

void Normaliser::forget(bool is_emptied) {
  std::vector<keys::BlockKey> known;
  known.reserve(handles_.size());
  for (const auto& [hash, handle] : handles_) {
    if (handle.key) known.push_back(*handle.key);
  }
  handles_.clear();
  open_items_.clear();
  waiting_.clear();
  missing_ = {};
  // With the blocks it held. Otherwise an engine could cause a search of all caches with each
  // message.
  tell(operations::Clear{.held = std::move(known)});
  if (!is_emptied) ++cache_.epoch;
}

void Normaliser::apply_event(const BlockStored& event) {
  if (!event.tier || event.remote) {
    ++statistics_.ignored_medium;
    return;
  }
  if (event.unknown_field) ++statistics_.unknown_field;
  is_paired_ |= event.paired;
  const auto group = counted_group(event);
  if (!group || event.hashes.empty()) return;
  const GroupTier place{.group = *group, .tier = *event.tier};
  if (event.tokens.empty()) {
    store_placeholders(event, place);
  } else {
    store_chain(event, place);
  }
}

void Normaliser::apply_event(const BlockRemoved& event) {
  if (!event.tier || event.remote) {
    ++statistics_.ignored_medium;
    return;
  }
  if (event.group && !groups_.counts(*event.group)) {
    ++statistics_.ignored_group;
    return;
  }
  const auto tier = *event.tier;
  std::vector<keys::BlockKey> removed;
  for (std::size_t i = 0; i < event.hashes.size(); ++i) {
    const auto hash = event.hashes[i];
    Loss loss{.tier = tier, .group = event.group};
    if (!event.copies_left.empty()) loss.left = event.copies_left[i];
    const bool has_waited = waiting_.cancel(hash, tier) > 0;
    const auto entry = handles_.find(hash);
    const bool was_held = entry != handles_.end() && held_everywhere(entry->second, tier);
    if (entry == handles_.end() || !give_up_copy(entry->second, loss)) {
      if (!has_waited) ++statistics_.unknown_removal;
      continue;
    }
    const Handle& handle = entry->second;
    if (was_held && handle.key && !held_everywhere(handle, tier)) removed.push_back(*handle.key);
    const bool gone =
        std::all_of(handle.copies.begin(), handle.copies.end(), [](const CopyCounts& c) {
          return std::all_of(c.tiers.begin(), c.tiers.end(), [](auto count) { return count == 0; });
        });
    if (gone) {
      handles_.erase(entry);
      open_items_.erase(hash);
    }
  }
  if (removed.empty()) return;
  statistics_.blocks_removed += removed.size();
  tell(operations::Remove{.tier = tier, .keys = std::move(removed)});
}

bool Normaliser::give_up_copy(Handle& handle, const Loss& loss) const {
  // Without a group, the number does not say how many copies each of several groups has left.
  const bool is_told = loss.left && (loss.group || handle.copies.size() == 1);
  bool had_one = false;
  for (auto& copies : handle.copies) {
    auto& count = copies.tiers[slot_of(loss.tier)];
    // Without a group, any group may have lost the copy.
    if (count == 0 || (loss.group && copies.group != *loss.group)) continue;
    const std::uint32_t counted = options_.copies == contract::Copies::LastCopy ? 0 : count - 1;
    count = is_told ? *loss.left : counted;
    had_one = true;
  }
  return had_one;
}

void Normaliser::apply_event(const AllBlocksCleared& /*event*/) {
  ++statistics_.cleared;
  forget(true);
  begin();
}

void Normaliser::apply_event(const UnknownEvent& /*event*/) { ++statistics_.ignored_type; }

void Normaliser::apply_event(const MalformedEvent& event) {
  ++statistics_.malformed;
  if (!event.store) forget(false);  // it may be a removal
}

void Normaliser::learn_group(const BlockStored& event) {
  const auto lesson = groups_.learn(event);
  if (lesson.refused) ++statistics_.groups_refused;
  if (lesson.forget) forget(false);
}

std::optional<std::int64_t> Normaliser::counted_group(const BlockStored& event) {
  if (event.group) {
    if (groups_.counts(*event.group)) return event.group;
    ++statistics_.ignored_group;
    return std::nullopt;
  }
  if (const auto only = groups_.only()) return only;
  // The store belongs to one of several groups, or to an unknown group.
  auto& counter =
      event.tokens.empty() ? statistics_.unknown_placeholder : statistics_.unknown_content;
  counter += event.hashes.size();
  missing_.unknown_content = true;
  return std::nullopt;
}

bool Normaliser::accept_block_size(std::uint32_t block_size) {
  const auto expected = this->block_size();
  block_size_seen_ = block_size;
  if (!expected || *expected == block_size) {
    block_size_conflict_.reset();
    return true;
  }
  block_size_conflict_ = block_size;
  ignoring_ = true;
  forget(false);
  return false;
}

void Normaliser::store_placeholders(const BlockStored& event, const GroupTier& place) {
  for (const auto hash : event.hashes) {
    const auto entry = handles_.find(hash);
    if (entry == handles_.end()) {
      ++statistics_.unknown_placeholder;
      missing_.forgotten = true;
      continue;
    }
    add_copy(entry->second, place);
  }
  flush_stores();
}

void Normaliser::store_chain(const BlockStored& event, const GroupTier& place) {
  const auto count = event.hashes.size();
  // An offloading tier may have smaller blocks than the group on the GPU.
  const bool is_other_size =
      place.tier != operations::Tier::Gpu && block_size() != event.block_size;
  if (event.block_size == 0 || event.tokens.size() != count * event.block_size || is_other_size) {
    statistics_.unknown_length += count;
    missing_.unknown_content = true;
    return;
  }
  if (place.tier == operations::Tier::Gpu && !accept_block_size(event.block_size)) return;
  const auto start = start_of(event);
  if (!start.announced) {
    const auto given_up = waiting_.keep(event);
    statistics_.unknown_parent += given_up;
    if (given_up > 0) missing_.forgotten = true;
    return;
  }
  store_after(start, event, place);
  if (!waiting_.empty()) take_waiting(event.hashes);
}

// Applies the waiting children of the announced blocks, then the children of these.
void Normaliser::take_waiting(std::vector<EngineHash> announced) {
  for (std::size_t i = 0; i < announced.size(); ++i) {
    for (const auto& event : waiting_.take(announced[i])) {
      const auto start = start_of(event);
      const auto group = counted_group(event);
      if (!start.announced || !group) continue;  // the parent found no room
      store_after(start, event, {.group = *group, .tier = *event.tier});
      statistics_.waited += event.hashes.size();
      announced.insert(announced.end(), event.hashes.begin(), event.hashes.end());
    }
  }
}

void Normaliser::store_after(const Start& start, const BlockStored& event, GroupTier place) {
  const auto count = event.hashes.size();
  place.report = reports_reused(event, place);
  Link link{.key = start.key, .parent = std::nullopt};
  for (std::size_t i = 0; i < count; ++i) {
    link.parent = i == 0 && start.is_root ? std::nullopt : link.key;
    if (link.key) link.key = content_.key_of(i, *link.key);
    if (!link.key) {
      ++statistics_.unknown_content;
      missing_.unknown_content = true;
    }
    if (!take(event.hashes[i], link, place)) {
      statistics_.handles_refused += count - i;
      missing_.no_room = true;
      break;
    }
    if (const auto open = content_.open_after(i); open && link.key) {
      open_items_.insert_or_assign(event.hashes[i], *open);
    }
  }
  flush_stores();
}

Normaliser::Start Normaliser::start_of(const BlockStored& event) {
  if (!event.parent) {
    content_.begin(event, {.is_first = true, .open = std::nullopt});
    const auto& adapter = event.lora_name;
    // At that time the name may have belonged to another adapter.
    if (adapter && !options_.adapters.apply_to(*adapter, batch_time_s_)) return {};
    return {.announced = true, .key = content_.root(), .is_root = true};
  }
  const auto parent = handles_.find(*event.parent);
  if (parent == handles_.end()) return {.announced = false, .key = std::nullopt};
  content::ChainStart place;
  if (const auto open = open_items_.find(*event.parent); open != open_items_.end()) {
    place.open = open->second;
  }
  content_.begin(event, place);
  return {.announced = true, .key = parent->second.key};
}

bool Normaliser::reports_reused(const BlockStored& event, const GroupTier& place) const {
  if (!rules_.repeats_report_reuse) return false;
  const auto held = std::count_if(event.hashes.begin(), event.hashes.end(), [&](EngineHash hash) {
    const auto entry = handles_.find(hash);
    return entry != handles_.end() && copies_of(entry->second, place) > 0;
  });
  return held >= 2;
}

std::uint32_t Normaliser::copies_of(const Handle& handle, const GroupTier& place) {
  for (const auto& copies : handle.copies) {
    if (copies.group == place.group) return copies.tiers[slot_of(place.tier)];
  }
  return 0;
}

bool Normaliser::held_everywhere(const Handle& handle, operations::Tier tier) const {
  // All copies are of groups that count. If a group stops to count, everything is forgotten.
  const auto held = std::count_if(
      handle.copies.begin(), handle.copies.end(),
      [slot = slot_of(tier)](const CopyCounts& copies) { return copies.tiers[slot] > 0; });
  return held > 0 && static_cast<std::size_t>(held) == groups_.counting();
}

bool Normaliser::take(EngineHash hash, const Link& link, const GroupTier& place) {
  if (handles_.size() >= handles_allowed_ && !handles_.contains(hash)) return false;
  const auto [entry, is_new] = handles_.try_emplace(hash);
  if (is_new) {
    entry->second.key = link.key;
    entry->second.parent = link.parent;
  } else if (entry->second.key && entry->second.key != link.key) {
    ++statistics_.conflicts;
    missing_.unknown_content = true;
    // Sends the collected blocks of this event first, to keep the order of operations.
    // order.
    flush_stores();
    withdraw(entry->second);
  }
  add_copy(entry->second, place);
  return true;
}

void Normaliser::add_copy(Handle& handle, const GroupTier& place) {
  auto copies = std::find_if(handle.copies.begin(), handle.copies.end(),
                             [&](const CopyCounts& c) { return c.group == place.group; });
  if (copies == handle.copies.end()) {
    copies = handle.copies.insert(handle.copies.end(), CopyCounts{.group = place.group});
  }
  const bool was_held = held_everywhere(handle, place.tier);
  auto& count = copies->tiers[slot_of(place.tier)];
  if (count == 0) {
    count = 1;
  } else if (place.report || options_.copies == contract::Copies::LastCopy) {
    ++statistics_.reports_repeated;
  } else {
    ++count;
    ++statistics_.copies_added;
  }
  if (!was_held && handle.key && held_everywhere(handle, place.tier)) {
    to_store_.add(place.tier, handle.parent, *handle.key);
  }
}

void Normaliser::withdraw(Handle& handle) {
  for (const auto tier : kTiers) {
    if (held_everywhere(handle, tier))
      tell(operations::Remove{.tier = tier, .keys = {*handle.key}});
  }
  handle.key.reset();
}

void Normaliser::flush_stores() {
  for (auto& store : to_store_.take()) {
    statistics_.blocks_stored += store.keys.size();
    tell(std::move(store));
  }
}

}  // namespace sightline::events
