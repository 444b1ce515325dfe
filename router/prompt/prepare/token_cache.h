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

struct TokenCacheOptions {
  std::uint64_t bytes_max = 0;   // of memory; 0: nothing is kept
  ByteBudget* memory = nullptr;  // what it is charged to; outlives the cache. Null: to nothing
  // Random and known to nobody: it keeps a client from making two texts that look alike here.
  std::array<std::uint8_t, 192> secret{};
};

// When tokenizing may end early.
struct EncodeUntil {
  std::size_t tokens_max = 0;
  std::stop_token left{};  // nobody waits for the ids any more
};

// The token ids of text that was tokenized lately, so that the turns of a conversation, and the
// beginning of a text that grew, are looked up instead of tokenized again.
//
// Kept are pieces (tokenizer::Pieces), whose ids follow from their bytes alone, under a 128-bit
// keyed hash (XXH3) of these bytes and their length: ids are those of Tokenizer::encode but for a
// collision, which nobody can look for without the secret.
//
// A piece that is new may push out pieces that were never asked for again; pieces that were have
// three quarters of the room and give it up to one another only, least recently used first. One
// text adds at most 1/32 of the room.
// Thread safety: encode() from any thread; a lock is held for look-ups, never while tokenizing.
class TokenCache {
 public:
  // tokenizer and metrics must outlive the cache.
  TokenCache(const tokenizer::Tokenizer& tokenizer, const TokenCacheOptions& options,
             runtime::Metrics& metrics);
  ~TokenCache();

  // As Tokenizer::encode, which it also gives the errors of; out is empty before. False, and out is
  // of no use, if the ids are more than tokens_max: the rest is not tokenized then, and no piece
  // of which it is certain beforehand. Error besides: Cancelled.
  Result<bool> encode(std::string_view text, const EncodeUntil& until, std::vector<TokenId>& out);

  // Drops entries of this many bytes or somewhat more, or all; false if there were none. From any
  // thread; takes about a millisecond for 64 MB.
  bool give_back(std::size_t bytes);

 private:
  struct Key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::size_t size_bytes = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.low; }
  };
  struct Ids {
    std::shared_ptr<const TokenId[]> ids;
    std::size_t count = 0;
    [[nodiscard]] std::span<const TokenId> view() const { return {ids.get(), count}; }
  };
  struct Entry {
    Key key;
    Ids ids;
    bool was_used = false;  // stands in `used`
  };
  using Entries = std::list<Entry>;  // most recently used first

  struct alignas(64) Shard {
    Mutex mutex;  // held for memory work only
    std::unordered_map<Key, Entries::iterator, KeyHash> entries SL_GUARDED_BY(mutex);
    Entries fresh SL_GUARDED_BY(mutex);  // not asked for since they came
    Entries used SL_GUARDED_BY(mutex);
    std::uint64_t used_bytes SL_GUARDED_BY(mutex) = 0;
    std::uint64_t bytes SL_GUARDED_BY(mutex) = 0;  // of both lists

    [[nodiscard]] std::optional<Ids> find(const Key& key, std::uint64_t used_bytes_max);
    // Takes the entry over, unless its key is there already, and gives back those that had to go.
    Entries insert(Entries& entry, std::uint64_t bytes_max);
    // Takes entries of so many bytes out, or all.
    Entries take_out(std::uint64_t bytes_to_free);
    void evict(std::uint64_t bytes_max, Entries& evicted) SL_REQUIRES(mutex);
  };
  static constexpr std::size_t kShards = 16;

  static std::uint64_t bytes_of(std::size_t ids);
  [[nodiscard]] Key key_of(std::string_view piece) const;
  void add(const Key& key, std::span<const TokenId> ids);
  // Counts entries that are gone, which nobody finds any more. Gives their bytes.
  std::size_t forget(const Entries& evicted);
  // Appends the ids of a piece, from what is kept if it is there. True if it was.
  bool encode_piece(const tokenizer::Piece& piece, std::uint64_t& room_bytes,
                    std::vector<TokenId>& out);

  const tokenizer::Tokenizer& tokenizer_;
  const TokenCacheOptions options_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::size_t> next_given_ = 0;  // the shard that gives entries back next
  runtime::Counter hit_bytes_;
  runtime::Counter miss_bytes_;
  runtime::Counter evictions_;
  runtime::Gauge bytes_;
};

}  // namespace sightline::prepare
