// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "router/cache/content/adapter_meanings.h"
#include "router/cache/content/block_content.h"
#include "router/cache/events/cache_groups.h"
#include "router/cache/events/normaliser_options.h"
#include "router/cache/events/store_runs.h"
#include "router/cache/events/waiting_stores.h"
#include "router/cache/keys/block_key.h"
#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"
#include "router/cache/wire/kv_event.h"

namespace sightline::events {

// Turns the KV events of one rank into operations on its cache, and engine hashes into block keys.
// Engine hashes are only handles here. Each has a key, and copies per cache group and tier.
//
// - The cache holds a block while each cache group that counts (CacheGroups) holds it. The first
//   announcement of a further counting group forgets all earlier blocks.
// - Nothing is guessed. A block whose length, media, LoRA adapter or salt is not certain gets no
//   key. Neither do its children. A block whose parent is unknown waits for it. Any removal of the
//   block ends the wait.
// - CopyCounts: engines announce a second physical copy of a block as one more BlockStored. In vLLM
//   this concerns the last block of a prompt or a decoded block, one block per event. An event that
//   announces two or more held blocks again reports reuse (kv_cache_report_mode full) and adds no
//   copy. A report of a single block looks like a copy. Therefore the router edits requests that
//   ask for reports. If an engine reports anyway, at most one block per report outlives its
//   removal. This lasts until the engine clears its cache, restarts or announces a loss. SGLang has
//   no reports, so each repetition is a copy. A removal may state how many copies are left. That
//   number replaces the count. It adds no block that was never announced.
// - A GPU event may contradict the configured block size, or the engine's first one. The cache is
//   then cleared, and events are ignored until reset(). The caller then excludes the worker, as
//   block_size_conflict() is set. Events of other tiers neither set nor contradict the size. They
//   are dropped if their size differs.
//
// Encodings before vLLM 0.17 have no salt, so a salted prompt looks like a plain one.
// Thread safety: one thread at a time. Scheme and sink outlive it. The destructor sends no
// operation.
class Normaliser {
 public:
  Normaliser(NormaliserOptions options, const keys::Scheme& scheme,
             operations::OperationSink& sink);

  // Applies the events of one message in their order.
  void apply(const EventBatch& batch);
  // The engine's first message follows, so its cache is empty.
  void begin() { missing_ = {.forgotten = false}; }
  // Forgets everything, clears the cache and begins its next epoch: the engine restarted, or an
  // unknown part of its events is lost.
  void reset();

  // Returns the epoch of the next operation.
  [[nodiscard]] std::uint64_t epoch() const { return cache_.epoch; }
  // Returns the tokens per block from the events, or else from the configuration.
  [[nodiscard]] std::optional<std::uint32_t> block_size() const;
  // Returns the block size that contradicts the configured or the earlier one. Empty if no size
  // does. After a reset it remains until an event with the right size arrives.
  [[nodiscard]] std::optional<std::uint32_t> block_size_conflict() const {
    return block_size_conflict_;
  }
  [[nodiscard]] const operations::MissingBlocks& missing() const { return missing_; }
  [[nodiscard]] const NormaliserStatistics& statistics() const { return statistics_; }
  // Returns whether some cache groups do not count. It is unknown what they evict, so claims are an
  // upper bound.
  [[nodiscard]] bool has_uncounted_groups() const { return groups_.has_uncounted(); }
  // Returns whether the claims are an upper bound: because of the cache groups, or because each
  // block also depends on the token after it (`paired`).
  [[nodiscard]] bool is_upper_bound() const { return groups_.is_upper_bound() || is_paired_; }
  // Returns the number of remembered hashes, with or without known content.
  [[nodiscard]] std::size_t handles() const { return handles_.size(); }
  // Returns the number of blocks that wait for their parent.
  [[nodiscard]] std::size_t waiting() const { return waiting_.blocks(); }

 private:
  struct CopyCounts {
    std::int64_t group = 0;
    std::array<std::uint32_t, operations::kTierCount> tiers{};
  };
  struct Handle {
    // Empty: unknown content, in no operation.
    std::optional<keys::BlockKey> key;
    // Only with a key. Empty: a prompt's first block.
    std::optional<keys::BlockKey> parent;
    // One entry for each cache group that counts.
    std::vector<CopyCounts> copies;
  };

  void apply_event(const BlockStored& event);
  void apply_event(const BlockRemoved& event);
  void apply_event(const AllBlocksCleared& event);
  void apply_event(const UnknownEvent& event);
  void apply_event(const MalformedEvent& event);

  void learn_group(const BlockStored& event);
  // Returns the group of a store, if it counts. Otherwise counts the store as dropped and returns
  // empty.
  std::optional<std::int64_t> counted_group(const BlockStored& event);
  bool accept_block_size(std::uint32_t block_size);
  // Clears the cache. Begins the next epoch unless the engine itself emptied the cache.
  void forget(bool is_emptied);
  void tell(operations::Operation operation);
  void settle_handle_bytes();

  // The place of an event's blocks: one cache group on one tier.
  struct GroupTier {
    std::int64_t group = 0;
    operations::Tier tier = operations::Tier::Gpu;
    bool report = false;  // repeated blocks are no new copies
  };
  // The place where a chain begins. announced: the parent is known. key: its key, if known.
  struct Start {
    bool announced = true;
    std::optional<keys::BlockKey> key;
    bool is_root = false;  // of a prompt: no block
  };
  // A block of a chain. Without a key its content is unknown.
  struct Link {
    std::optional<keys::BlockKey> key;
    std::optional<keys::BlockKey> parent;  // empty: a prompt's first block
  };
  void store_placeholders(const BlockStored& event, const GroupTier& place);
  void store_chain(const BlockStored& event, const GroupTier& place);
  void store_after(const Start& start, const BlockStored& event, GroupTier place);
  void take_waiting(std::vector<EngineHash> announced);
  // Also begins the event's content (BlockContent::begin).
  Start start_of(const BlockStored& event);

  // Adds one announced block. False: no room.
  bool take(EngineHash hash, const Link& link, const GroupTier& place);
  void add_copy(Handle& handle, const GroupTier& place);
  void withdraw(Handle& handle);
  void flush_stores();
  [[nodiscard]] static std::uint32_t copies_of(const Handle& handle, const GroupTier& place);
  // What one removal says about a block.
  struct Loss {
    operations::Tier tier = operations::Tier::Gpu;
    std::optional<std::int64_t> group;  // empty: any of them
    std::optional<std::uint32_t> left;  // copies, if the event states it
  };
  // Removes one copy in the named group, or in each group. False: there was no copy.
  bool give_up_copy(Handle& handle, const Loss& loss) const;
  [[nodiscard]] bool held_everywhere(const Handle& handle, operations::Tier tier) const;
  [[nodiscard]] bool reports_reused(const BlockStored& event, const GroupTier& place) const;

  const NormaliserOptions options_;
  const wire::EventRules rules_;
  operations::OperationSink& sink_;

  operations::CacheName cache_;
  content::BlockContent content_;
  std::unordered_map<EngineHash, Handle, EngineHashing> handles_;
  HeldBytes handle_bytes_;           // of handles_, after the last batch.
  std::size_t handles_allowed_ = 0;  // for this batch, by the limits of the rank and of all ranks.
  // Of handles with a key that end within an item, if the engine states no offsets.
  std::unordered_map<EngineHash, content::OpenItem, EngineHashing> open_items_;
  WaitingStores waiting_;
  CacheGroups groups_;
  std::optional<std::uint32_t> block_size_seen_;
  std::optional<std::uint32_t> block_size_conflict_;
  operations::MissingBlocks missing_;
  NormaliserStatistics statistics_;
  double batch_time_s_ = 0;  // of the current batch, by the engine's clock.
  bool is_paired_ = false;   // tokens came in pairs since the last reset.
  bool ignoring_ = false;    // block sizes contradicted each other since the last reset.
  StoreRuns to_store_;       // of the current event.
};

}  // namespace sightline::events
