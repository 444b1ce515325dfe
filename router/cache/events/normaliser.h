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

#include "router/cache/content/adapters.h"
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

// The cache of one rank core (worker and rank) as its events tell it: turns engine hashes into
// BlockKeys and events into operations. Engine hashes are only handles here: hash -> key, and
// copies per cache group and tier.
//
// Rules:
// - A block is held while every cache group that counts (CacheGroups) holds it. What was held
//   before such a group is first announced is forgotten.
// - Nothing is guessed: a block whose length, media, LoRA or salt is not certain is not told of,
//   and neither are its children. A block whose parent is not known waits for it; any removal of
//   the block ends that.
// - CopyCounts: engines announce a second physical copy of a block as one more BlockStored. In vLLM
//   that happens to the last block of a prompt or to a decoded block, one block per event. Where
//   one event announces two or more blocks again, it is a report of reused blocks
//   (kv_cache_report_mode full), which is no new copy. A report of a single block cannot be told
//   from a copy, so requests that ask for reports must not reach an engine: they are edited. From
//   one that did otherwise, at most one block per report outlives its removal, until the engine
//   clears its cache, restarts or announces a loss. SGLang has no reports: all are copies.
//   Where the engine tells with a removal how many copies are left, that is so, whatever was
//   counted; a block that was never announced is not held for it.
// - A GPU event whose block size differs from the configured one, or from the engine's first one,
//   clears the cache until reset(), and block_size_conflict() tells the caller to
//   exclude the worker. Events of other tiers neither set the size nor contradict it: those of
//   another size are not taken.
//
// Encodings before vLLM 0.17 carry no salt: there a salted prompt looks like a plain one.
// Thread safety: none. The scheme and the sink outlive it; destruction tells the sink nothing.
class Normaliser {
 public:
  Normaliser(NormaliserOptions options, const keys::Scheme& scheme,
             operations::OperationSink& sink);

  void apply(const EventBatch& batch);
  // The engine's first message comes next: its cache is empty.
  void begin() { missing_ = {.forgotten = false}; }
  // The engine restarted, or an unknown part of its events is lost: forgets everything, clears the
  // cache and begins its next epoch.
  void reset();

  // The one that operations come under from now on.
  [[nodiscard]] std::uint64_t epoch() const { return cache_.epoch; }
  // Tokens per block: as its events say, else as configured.
  [[nodiscard]] std::optional<std::uint32_t> block_size() const;
  // The block size that contradicts the configured or earlier one; nothing: no contradiction. After
  // a reset it stays until an event with the right one arrives.
  [[nodiscard]] std::optional<std::uint32_t> block_size_conflict() const {
    return block_size_conflict_;
  }
  [[nodiscard]] const operations::MissingBlocks& missing() const { return missing_; }
  [[nodiscard]] const NormaliserStatistics& statistics() const { return statistics_; }
  // Some cache groups do not count: what they evict is not known, so claims are an upper bound.
  [[nodiscard]] bool has_uncounted_groups() const { return groups_.has_uncounted(); }
  // By the kinds of its cache groups, or as its blocks depend on a token behind them, what is
  // claimed of it is an upper bound.
  [[nodiscard]] bool is_upper_bound() const { return groups_.is_upper_bound() || is_paired_; }
  // Blocks whose hashes are remembered, of known content or not.
  [[nodiscard]] std::size_t handles() const { return handles_.size(); }
  // Blocks that wait for their parent.
  [[nodiscard]] std::size_t waiting() const { return waiting_.blocks(); }

 private:
  struct CopyCounts {
    std::int64_t group = 0;
    std::array<std::uint32_t, operations::kTierCount> tiers{};
  };
  struct Handle {
    std::optional<keys::BlockKey> key;     // nothing: content unknown, never told
    std::optional<keys::BlockKey> parent;  // where the key is known; nothing: a prompt's first
    std::vector<CopyCounts> copies;        // per cache group that counts
  };

  void apply_event(const BlockStored& event);
  void apply_event(const BlockRemoved& event);
  void apply_event(const AllBlocksCleared& event);
  void apply_event(const UnknownEvent& event);
  void apply_event(const MalformedEvent& event);

  void learn_group(const BlockStored& event);
  // The group of a store that counts; nothing: it is not to be taken, which is counted.
  std::optional<std::int64_t> counted_group(const BlockStored& event);
  bool accept_block_size(std::uint32_t block_size);
  // Clears the cache. The next epoch begins unless the engine has emptied it.
  void forget(bool is_emptied);
  void tell(operations::Operation operation);
  void settle_handle_bytes();

  // What an event is about: blocks of one cache group on one tier.
  struct GroupTier {
    std::int64_t group = 0;
    operations::Tier tier = operations::Tier::Gpu;
    bool report = false;  // blocks held already are not new copies
  };
  // Where a chain attaches. announced: the parent is known to exist; key: and what it is.
  struct Start {
    bool announced = true;
    std::optional<keys::BlockKey> key;
    bool is_root = false;  // of a prompt: no block
  };
  // A block of a chain; of unknown content where it has no key.
  struct Link {
    std::optional<keys::BlockKey> key;
    std::optional<keys::BlockKey> parent;  // nothing: a prompt's first
  };
  void store_placeholders(const BlockStored& event, const GroupTier& place);
  void store_chain(const BlockStored& event, const GroupTier& place);
  void store_after(const Start& start, const BlockStored& event, GroupTier place);
  void take_waiting(std::vector<EngineHash> announced);
  // Also begins to read what the event's blocks hold.
  Start start_of(const BlockStored& event);

  // Takes one announced block in; false: no room.
  bool take(EngineHash hash, const Link& link, const GroupTier& place);
  void add_copy(Handle& handle, const GroupTier& place);
  void withdraw(Handle& handle);
  void flush_stores();
  [[nodiscard]] static std::uint32_t copies_of(const Handle& handle, const GroupTier& place);
  // What one removal of a block says.
  struct Loss {
    operations::Tier tier = operations::Tier::Gpu;
    std::optional<std::int64_t> group;  // nothing: any of them
    std::optional<std::uint32_t> left;  // copies, where it is told
  };
  // One copy less in the group, or in every one; false: there was none.
  bool give_up_copy(Handle& handle, const Loss& loss) const;
  [[nodiscard]] bool held_everywhere(const Handle& handle, operations::Tier tier) const;
  [[nodiscard]] bool reports_reused(const BlockStored& event, const GroupTier& place) const;

  const NormaliserOptions options_;
  const wire::EventRules rules_;
  operations::OperationSink& sink_;

  operations::CacheName cache_;
  content::BlockContent content_;
  std::unordered_map<EngineHash, Handle, EngineHashing> handles_;
  HeldBytes handle_bytes_;           // of them, as of the last batch
  std::size_t handles_allowed_ = 0;  // by this rank's and all ranks' bound, for this batch
  // Of handles of known content that end within an item, where the engine tells no offsets.
  std::unordered_map<EngineHash, content::OpenItem, EngineHashing> open_items_;
  WaitingStores waiting_;
  CacheGroups groups_;
  std::optional<std::uint32_t> block_size_seen_;
  std::optional<std::uint32_t> block_size_conflict_;
  operations::MissingBlocks missing_;
  NormaliserStatistics statistics_;
  double batch_time_s_ = 0;  // the engine's clock, of the batch being applied
  bool is_paired_ = false;   // tokens came in pairs since the last reset
  bool ignoring_ = false;    // block sizes disagreed since the last reset
  StoreRuns to_store_;       // of one event
};

}  // namespace sightline::events
