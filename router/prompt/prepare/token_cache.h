// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/base/result.h"
#include "common/runtime/metrics.h"

#include "router/prompt/tokenizer/tokenizer.h"

namespace sightline::prepare {

// The limits of a token cache and its secret.
struct TokenCacheOptions {
  // Memory in bytes (model.token_cache_bytes_max). With 0 the cache keeps nothing.
  std::uint64_t bytes_max = 0;
  // A budget that the cache's memory counts towards, or null. It must live longer than the cache.
  ByteBudget* memory = nullptr;
  // The secret of the hash. It must be random, because a client that knew it could make two texts
  // with one key.
  std::array<std::uint8_t, 192> secret{};
};

// The conditions that end encode() early.
struct EncodeUntil {
  // The most ids that are useful.
  std::size_t tokens_max = 0;
  // Stopped when the client has left.
  std::stop_token left{};
};

// Keeps the token ids of recent text. The turns of a conversation, or the beginning of a text that
// grew, are then looked up instead of tokenized again.
//
// The cache keeps pieces (tokenizer::Pieces), whose ids follow from their bytes alone. The key of a
// piece is a 128-bit hash of its bytes (XXH3 with a secret) and its length. The ids equal those of
// Tokenizer::encode, except after a collision. Without the secret no client can search for
// collisions.
//
// A new piece may evict pieces that were not requested again. Pieces that were requested again keep
// three quarters of the memory. They evict only one another, the least recently used first. One
// text adds at most 1/32 of the memory.
//
// Thread safety: encode() may run on any thread. A lock is held for look-ups, and never while
// tokenizing.
class TokenCache {
 public:
  // The tokenizer and the metrics must live longer than the cache.
  TokenCache(const tokenizer::Tokenizer& tokenizer, const TokenCacheOptions& options,
             runtime::Metrics& metrics);
  ~TokenCache();

  // Appends the ids of the text to `out`, which must be empty. Returns false if there are more than
  // tokens_max ids. `out` is then not valid. In this case the rest of the text is not tokenized,
  // and neither is a piece that surely does not fit.
  //
  // Errors: those of Tokenizer::encode, and Cancelled.
  Result<bool> encode(std::string_view text, const EncodeUntil& until, std::vector<TokenId>& out);

  // Drops entries of this many bytes or somewhat more, or all entries. Returns false if the cache
  // was empty. Any thread may call it. It takes about a millisecond for 64 MB.
  bool give_back(std::size_t bytes);

 private:
  // The name of a piece: its hash and its length.
  struct PieceKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::size_t size_bytes = 0;
    friend bool operator==(const PieceKey&, const PieceKey&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const PieceKey& key) const { return key.low; }
  };
  struct Ids {
    std::shared_ptr<const TokenId[]> ids;
    std::size_t count = 0;
    [[nodiscard]] std::span<const TokenId> view() const { return {ids.get(), count}; }
  };
  struct Entry {
    PieceKey key;
    Ids ids;
    // True if the entry is in the list `used`.
    bool was_used = false;
  };
  // The most recently used entry is the first.
  using Entries = std::list<Entry>;

  // One of several parts of the cache, each with its own lock. A key belongs to one shard.
  struct alignas(64) Shard {
    // Held for memory work only.
    Mutex mutex;
    std::unordered_map<PieceKey, Entries::iterator, KeyHash> entries SL_GUARDED_BY(mutex);
    // Entries that were not requested after their insertion.
    Entries fresh SL_GUARDED_BY(mutex);
    // Entries that were requested again.
    Entries used SL_GUARDED_BY(mutex);
    std::uint64_t used_bytes SL_GUARDED_BY(mutex) = 0;
    // Bytes of both lists.
    std::uint64_t bytes SL_GUARDED_BY(mutex) = 0;

    // Looks a key up. A hit moves its entry to the front of `used`. Entries that exceed
    // used_bytes_max move back to `fresh`.
    [[nodiscard]] std::optional<Ids> find(const PieceKey& key, std::uint64_t used_bytes_max);
    // Moves the entry into the shard, unless it has the key already. Returns the evicted entries.
    Entries insert(Entries& entry, std::uint64_t bytes_max);
    // Removes entries of this many bytes, or all entries, and returns them.
    Entries take_out(std::uint64_t bytes_to_free);
    void evict(std::uint64_t bytes_max, Entries& evicted) SL_REQUIRES(mutex);
  };
  static constexpr std::size_t kShards = 16;

  static std::uint64_t bytes_of(std::size_t ids);
  [[nodiscard]] PieceKey key_of(std::string_view piece) const;
  void add(const PieceKey& key, std::span<const TokenId> ids);
  // Counts the removed entries in metrics and budget. Returns their bytes.
  std::size_t forget(const Entries& evicted);
  // Appends the ids of a piece, from the cache if possible. Returns true for a hit. room_bytes is
  // the memory that this text may still add.
  bool encode_piece(const tokenizer::Piece& piece, std::uint64_t& room_bytes,
                    std::vector<TokenId>& out);

  const tokenizer::Tokenizer& tokenizer_;
  const TokenCacheOptions options_;
  std::array<Shard, kShards> shards_;
  // The shard that gives entries back next.
  std::atomic<std::size_t> next_given_ = 0;
  runtime::Counter hit_bytes_;
  runtime::Counter miss_bytes_;
  runtime::Counter evictions_;
  runtime::Gauge bytes_;
};

}  // namespace sightline::prepare
