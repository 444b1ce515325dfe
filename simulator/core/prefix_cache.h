// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/core/kv_event.h"
#include "simulator/core/window_group.h"

namespace sightline::core {

// Placeholder range of one media item: token positions in the whole prompt.
struct MediaRange {
  std::string identifier;
  std::size_t offset = 0;
  std::size_t length = 0;
};

// What sets a request's blocks apart besides its tokens. media is ordered by offset. session_id
// is only repeated in events.
struct SequenceKeys {
  std::optional<Lora> lora;
  std::vector<MediaRange> media;
  std::optional<std::string> cache_salt;
  std::optional<std::string> session_id;
};

// The tokens of one request and the blocks it holds. Belongs to one PrefixCache.
class Sequence {
 public:
  Sequence(std::vector<TokenId> tokens, SequenceKeys keys)
      : tokens_(std::move(tokens)), keys_(std::move(keys)) {}

  [[nodiscard]] const std::vector<TokenId>& tokens() const { return tokens_; }
  [[nodiscard]] const SequenceKeys& keys() const { return keys_; }
  [[nodiscard]] bool holds_blocks() const { return !blocks_.empty(); }
  void append(TokenId token) { tokens_.push_back(token); }

 private:
  friend class PrefixCache;
  std::vector<TokenId> tokens_;
  SequenceKeys keys_;
  std::vector<BlockHash> hashes_;      // of leading whole blocks, as far as needed yet
  std::vector<std::uint32_t> blocks_;  // physical blocks held, in order
  std::size_t cached_blocks_ = 0;      // leading blocks whose hash is in the cache's table
};

// The block pool of a vLLM 0.32 engine with prefix caching and one full-attention group, checked
// against recorded traffic of that version: only whole blocks are cached; a free block keeps its
// content until it is needed; the least recently used goes first, and of one request the tail
// first; blocks without content are used up before any content is evicted; a second physical copy
// of a hash is announced again and later removed on its own; a reset is announced with the next
// batch of events.
// Deterministic: no clock, no randomness. Thread safety: none; one owner.
class PrefixCache {
 public:
  struct Options {
    std::uint32_t block_size = 16;  // tokens
    // Physical blocks. One of them is vLLM's null block and never holds anything.
    std::uint32_t blocks = 4096;
    // The last block found is computed again (vLLM 0.32 with EAGLE or MTP speculative decoding,
    // v1/core/single_type_kv_cache_manager.py).
    bool drop_last_hit = false;
    // A hybrid model: a second cache group, of layers with a sliding window of so many blocks; 0:
    // none. A hit needs the blocks of its last window there too.
    std::uint32_t window_blocks = 0;
  };

  explicit PrefixCache(const Options& options);

  // Leading tokens of the sequence that the cache holds: whole blocks, at most
  // floor((tokens-1)/block_size) of them, since the last token is always computed; see
  // drop_last_hit.
  std::size_t match(Sequence& sequence) const;

  // Gives the sequence blocks for its first tokens_total tokens and caches those that become
  // whole. The first call also takes over what match() finds. False, and nothing changes, when
  // too few blocks are free. report_reused announces the blocks taken over as well
  // (vLLM's kv_cache_report_mode "full").
  bool grow(Sequence& sequence, std::size_t tokens_total, bool report_reused = false);

  // Gives all blocks back; their content stays until they are needed.
  void release(Sequence& sequence);

  // Forgets all content. False, and nothing happens, while any sequence holds a block.
  bool reset();
  // The same, but it is not announced: what no real engine should do.
  bool forget();

  // Events since the last call, in the order in which they happened.
  std::vector<KvEvent> take_events();

  // What a block's hash is made of.
  struct Content {
    std::optional<BlockHash> parent;
    std::vector<TokenId> tokens;
    ExtraKeys extra_keys;
  };
  // A hash that is held, and by how many physical blocks. content lives until the cache changes.
  struct Cached {
    BlockHash hash{};
    std::uint32_t copies = 0;
    const Content* content = nullptr;
  };
  // In no particular order.
  [[nodiscard]] std::vector<Cached> cached() const;

  [[nodiscard]] std::size_t distinct_cached() const { return table_.size(); }
  // Events that take_events() would give.
  [[nodiscard]] std::size_t pending_events() const { return events_.size(); }
  [[nodiscard]] std::uint32_t block_size() const { return options_.block_size; }
  [[nodiscard]] std::size_t blocks_usable() const { return pool_.size() - 1; }
  [[nodiscard]] std::size_t blocks_free() const { return free_count_; }

 private:
  struct Block {
    std::optional<BlockHash> hash;
    std::uint32_t holders = 0;
    std::uint32_t previous = 0;  // neighbours in the free list; block 0 closes the ring
    std::uint32_t next = 0;
  };
  struct HashOfHash {
    std::size_t operator()(const BlockHash& hash) const { return event_integer(hash); }
  };

  void extend_hashes(Sequence& sequence, std::size_t blocks) const;
  std::vector<std::uint32_t> find_hits(Sequence& sequence) const;
  void take_hits(Sequence& sequence, const std::vector<std::uint32_t>& hits);
  std::uint32_t pop_free();
  void enter(const Sequence& sequence, std::size_t position);
  void cache_whole_blocks(Sequence& sequence, std::size_t tokens_total);
  void announce(const Sequence& sequence, std::size_t first, std::size_t last);
  void keep_window(const Sequence& sequence, std::size_t first, std::size_t last);
  void link_before(std::uint32_t block, std::uint32_t position);
  void unlink(std::uint32_t block);

  const Options options_;
  WindowGroup window_;
  std::vector<Block> pool_;  // [0] is the null block and the head of the free list
  std::size_t free_count_ = 0;
  struct Entry {
    std::vector<std::uint32_t> blocks;  // physical, oldest first: the first one serves hits
    Content content;
  };
  std::unordered_map<BlockHash, Entry, HashOfHash> table_;
  std::vector<KvEvent> events_;
};

// Extra keys of the block that covers tokens [begin, begin + block_size).
ExtraKeys extra_keys_of(const SequenceKeys& keys, std::size_t begin, std::uint32_t block_size);

}  // namespace sightline::core
