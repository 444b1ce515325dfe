// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

#include "router/prompt/tokenizer/merges.h"
#include "router/prompt/tokenizer/vocabulary.h"

namespace sightline::tokenizer {

// A word of 1 to kSizeMax bytes as a value. It is padded with zeros, and the last byte holds its
// size.
struct SmallWord {
  static constexpr std::size_t kSizeMax = 15;

  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const SmallWord&, const SmallWord&) = default;

  // Copies a word. It reads 16 bytes where text_end allows it, because this needs no loop.
  static SmallWord of(std::string_view word, const char* text_end) {
    std::uint64_t parts[2] = {0, 0};
    if (text_end - word.data() >= 16) {
      std::memcpy(parts, word.data(), 16);
    } else {
      std::memcpy(parts, word.data(), word.size());
    }
    const Mask& mask = kMasks[word.size()];
    return {parts[0] & mask.low, (parts[1] & mask.high) | (std::uint64_t{word.size()} << 56U)};
  }

  // A hash whose highest bits are well mixed. The tables use only these.
  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t h = low * 0x9E3779B97F4A7C15ULL + (high ^ (high >> 31U)) * 0xD6E8FEB86659FD93ULL;
    h ^= h >> 32U;
    return h * 0xC2B2AE3D27D4EB4FULL;
  }

 private:
  struct Mask {
    std::uint64_t low;
    std::uint64_t high;
  };
  static constexpr std::array<Mask, kSizeMax + 1> kMasks = [] {
    std::array<Mask, kSizeMax + 1> masks{};
    for (std::size_t size = 0; size <= kSizeMax; ++size) {
      const std::uint64_t all = ~std::uint64_t{0};
      masks[size].low = size >= 8 ? all : (std::uint64_t{1} << (8 * size)) - 1;
      masks[size].high = size <= 8 ? 0 : (std::uint64_t{1} << (8 * (size - 8))) - 1;
    }
    return masks;
  }();
};

// The vocabulary tokens of at most SmallWord::kSizeMax bytes, as words that are one token. It
// contains only tokens that the merges make of their bytes. A few rare tokens are missing where a
// bucket is full.
//
// Thread safety: immutable, any thread may use it.
class WordTable {
 public:
  WordTable(const Vocabulary& vocabulary, const MergeTable& merges);

  // No token has this id.
  static constexpr TokenId kNone = ~TokenId{0};
  // Returns the one token of a word, or kNone. `hash` is word.hash().
  [[nodiscard]] TokenId find(const SmallWord& word, std::uint64_t hash) const {
    const Bucket& bucket = buckets_[hash >> shift_];
    if (bucket.words[0] == word) return bucket.ids[0];
    if (bucket.words[1] == word) return bucket.ids[1];
    return kNone;
  }
  // Loads the bucket of a hash into the CPU cache.
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&buckets_[hash >> shift_]); }

 private:
  // A bucket lies in one line of the CPU cache.
  struct alignas(64) Bucket {
    std::array<SmallWord, 2> words{};
    std::array<TokenId, 2> ids{};
  };

  std::vector<Bucket> buckets_;
  unsigned shift_;
};

// Keeps the ids of words that a thread has encoded before. New words replace old ones. It takes
// about 1 MB.
//
// Thread safety: one owner. The owner uses it with one MergeTable only.
class WordCache {
 public:
  WordCache();

  // Words with more ids are not kept.
  static constexpr std::size_t kIdsMax = 16;
  // Writes the ids of a word to `ids`, which has room for kIdsMax. Returns their number, 0 for an
  // unknown word. `hash` is hash_of_word(word).
  std::size_t find(std::string_view word, std::uint64_t hash, TokenId* ids) const;
  // Keeps the ids of a word. Ignores a word that does not fit into a slot.
  void insert(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids);

  // The same for small words. They have slots of their own, if they have at most this many ids.
  static constexpr std::size_t kSmallIdsMax = 4;
  std::size_t find_small(const SmallWord& word, std::uint64_t hash, TokenId* ids) const {
    const SmallSlot& slot = small_[hash >> kSmallShift];
    if (slot.word != word) return 0;
    std::memcpy(ids, slot.ids.data(), sizeof slot.ids);
    const std::size_t count = ids[0] >> kCountShift;
    ids[0] &= (1U << kCountShift) - 1;
    return count;
  }
  void insert_small(const SmallWord& word, std::uint64_t hash, std::span<const TokenId> ids);

 private:
  static constexpr unsigned kCountShift = 24;  // the number of ids, above the first of them
  // The tables are indexed by the highest bits of a hash: 2^14 small slots and 2^12 large ones.
  static constexpr unsigned kSmallShift = 64 - 14;
  static constexpr unsigned kLargeShift = 64 - 12;
  static_assert(kTokenIdMax < (1U << kCountShift));

  struct SmallSlot {
    SmallWord word;
    std::array<TokenId, kSmallIdsMax> ids{};
  };
  struct LargeSlot {
    std::uint8_t size = 0;
    std::uint8_t count = 0;
    std::array<char, 62> bytes{};
    std::array<TokenId, kIdsMax> ids{};
  };
  static_assert(sizeof(SmallSlot) == 32 && sizeof(LargeSlot) == 128);

  std::vector<SmallSlot> small_;
  std::vector<LargeSlot> large_;
};

// The hash of a word of any size, for WordCache::find() and insert().
std::uint64_t hash_of_word(std::string_view word);

}  // namespace sightline::tokenizer
