// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/core/published_event.h"
#include "simulator/core/window_group.h"

namespace sightline::core {

// The placeholder range of one media item, in tokens of the whole prompt.
struct MediaRange {
  std::string identifier;
  std::size_t offset = 0;
  std::size_t length = 0;
};

// The properties of a request's blocks besides its tokens. `media` is ordered by offset.
// `session_id` is only repeated in events.
struct SequenceKeys {
  std::optional<Lora> lora;
  std::vector<MediaRange> media;
  std::optional<std::string> cache_salt;
  std::optional<std::string> session_id;
};

// The tokens of one request and the blocks that it holds. It belongs to one PrefixCache.
class Sequence {
 public:
  // `tokens` are those of the prompt, at least one. It holds no blocks at first.
  Sequence(std::vector<TokenId> tokens, SequenceKeys keys)
      : tokens_(std::move(tokens)), keys_(std::move(keys)) {}

  // The tokens of the prompt and of the answer so far.
  [[nodiscard]] const std::vector<TokenId>& tokens() const { return tokens_; }
  [[nodiscard]] const SequenceKeys& keys() const { return keys_; }
  [[nodiscard]] bool holds_blocks() const { return !blocks_.empty(); }
  // Adds a token of the answer. A later grow() gives it a block.
  void append(TokenId token) { tokens_.push_back(token); }

 private:
  friend class PrefixCache;
  std::vector<TokenId> tokens_;
  SequenceKeys keys_;
  std::vector<BlockHash> hashes_;      // of the leading whole blocks that were needed so far.
  std::vector<std::uint32_t> blocks_;  // physical blocks that it holds, in order
  std::size_t cached_blocks_ = 0;      // leading blocks whose hash is in the cache's table
};

// The block pool of a vLLM 0.32 engine with prefix caching and one full-attention group. It was
// checked against recorded traffic of this version:
// - Only whole blocks are cached. A free block keeps its content until it is needed.
// - The least recently used block is evicted first, and of one request the last block first.
// - Blocks without content are used before any content is evicted.
// - A second physical copy of a hash is announced again, and later removed separately.
// - A reset is announced with the next batch of events.
//
// Deterministic: it uses no clock and no random numbers. Thread safety: one owner.
class PrefixCache {
 public:
  struct Options {
    std::uint32_t block_size = 16;  // tokens
    // Physical blocks. One of them is vLLM's null block, which never has content.
    std::uint32_t blocks = 4096;
    // The last block of a hit is computed again (vLLM 0.32 with EAGLE or MTP speculative decoding,
    // v1/core/single_type_kv_cache_manager.py).
    bool drop_last_hit = false;
    // For a hybrid model: the blocks in the sliding window of a second cache group. A hit needs the
    // blocks of its last window in that group too. 0: no second group.
    std::uint32_t window_blocks = 0;
  };

  explicit PrefixCache(const Options& options);

  // Returns the leading tokens of the sequence that the cache holds, in whole blocks. It is at most
  // floor((tokens-1)/block_size) blocks, because the last token is always computed. See
  // drop_last_hit.
  std::size_t match(Sequence& sequence) const;

  // Gives the sequence blocks for its first tokens_total tokens, and caches the blocks that are
  // then whole. The first call also takes the blocks that match() finds. With report_reused it
  // announces these blocks as well (kv_cache_report_mode "full" of vLLM). If too few blocks are
  // free, it changes nothing and returns false.
  bool grow(Sequence& sequence, std::size_t tokens_total, bool report_reused = false);

  // Returns all blocks. Their content stays until they are needed.
  void release(Sequence& sequence);

  // Drops all content. If any sequence holds a block, it changes nothing and returns false.
  bool reset();
  // The same without an event. No real engine should do this.
  bool forget();

  // Returns the events after the last call, in their order.
  std::vector<KvEvent> take_events();

  // The input of a block's hash.
  struct Content {
    std::optional<BlockHash> parent;
    std::vector<TokenId> tokens;
    ExtraKeys extra_keys;
  };
  // A hash in the cache, and the number of its physical blocks. `content` is valid until the cache
  // changes.
  struct Cached {
    BlockHash hash{};
    std::uint32_t copies = 0;
    const Content* content = nullptr;
  };
  // Returns all hashes in the cache, in no particular order.
  [[nodiscard]] std::vector<Cached> cached() const;

  // The number of different hashes in the cache. Several copies of a block count once.
  [[nodiscard]] std::size_t distinct_cached() const { return table_.size(); }
  // The number of events that take_events() would return.
  [[nodiscard]] std::size_t pending_events() const { return events_.size(); }
  [[nodiscard]] std::uint32_t block_size() const { return options_.block_size; }
  // The number of blocks without the null block.
  [[nodiscard]] std::size_t blocks_usable() const { return pool_.size() - 1; }
  // The number of blocks that no sequence holds. They may still have content.
  [[nodiscard]] std::size_t blocks_free() const { return free_count_; }

 private:
  struct Block {
    std::optional<BlockHash> hash;
    std::uint32_t holders = 0;
    std::uint32_t previous = 0;  // neighbours in the free list. Block 0 closes the ring
    std::uint32_t next = 0;
  };
  struct HashOfHash {
    std::size_t operator()(const BlockHash& hash) const { return event_integer(hash); }
  };

  // Computes the hashes of the first `blocks` blocks. They must be whole.
  void extend_hashes(Sequence& sequence, std::size_t blocks) const;
  // Returns the physical blocks of the leading hits, without taking them.
  std::vector<std::uint32_t> find_hits(Sequence& sequence) const;
  void take_hits(Sequence& sequence, const std::vector<std::uint32_t>& hits);
  // Takes the first free block. If it has content, the content is evicted with an event.
  std::uint32_t pop_free();
  // Puts the block at this position of the sequence into the table.
  void enter(const Sequence& sequence, std::size_t position);
  void cache_whole_blocks(Sequence& sequence, std::size_t tokens_total);
  // Adds an event for the blocks [first, last) of the sequence.
  void announce(const Sequence& sequence, std::size_t first, std::size_t last);
  void keep_window(const Sequence& sequence, std::size_t first, std::size_t last);
  // Puts a block into the free list before `position`. With position 0 it becomes the last one.
  void link_before(std::uint32_t block, std::uint32_t position);
  void unlink(std::uint32_t block);

  const Options options_;
  WindowGroup window_;
  // [0] is the null block and the head of the free list.
  std::vector<Block> pool_;
  std::size_t free_count_ = 0;
  struct Entry {
    // Physical blocks, the oldest first. The first one serves hits.
    std::vector<std::uint32_t> blocks;
    Content content;
  };
  std::unordered_map<BlockHash, Entry, HashOfHash> table_;
  std::vector<KvEvent> events_;
};

// Returns the extra keys of the block with the tokens [begin, begin + block_size).
ExtraKeys extra_keys_of(const SequenceKeys& keys, std::size_t begin, std::uint32_t block_size);

}  // namespace sightline::core
