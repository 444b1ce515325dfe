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

// A word of 1 to kSizeMax bytes, held by value: padded with zeros, its size in the last byte.
struct SmallWord {
  static constexpr std::size_t kSizeMax = 15;

  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const SmallWord&, const SmallWord&) = default;

  // 16 bytes are read where text_end allows it.
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

// The words that are one token, for every vocabulary token of at most SmallWord::kSizeMax bytes
// that merging its bytes gives. A few rare ones are left out where the table is crowded.
// Thread safety: immutable; any thread.
class WordTable {
 public:
  WordTable(const Vocabulary& vocabulary, const MergeTable& merges);

  static constexpr TokenId kNone = ~TokenId{0};
  // The word's one token, or kNone.
  [[nodiscard]] TokenId find(const SmallWord& word, std::uint64_t hash) const {
    const Bucket& bucket = buckets_[hash >> shift_];
    if (bucket.words[0] == word) return bucket.ids[0];
    if (bucket.words[1] == word) return bucket.ids[1];
    return kNone;
  }
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&buckets_[hash >> shift_]); }

 private:
  struct alignas(64) Bucket {
    std::array<SmallWord, 2> words{};
    std::array<TokenId, 2> ids{};
  };

  std::vector<Bucket> buckets_;
  unsigned shift_;
};

// Ids of words that a thread has solved before; new words push out old ones. About 1 MB.
// Thread safety: one owner, which uses it with one MergeTable only.
class WordCache {
 public:
  WordCache();

  // Ids of one word that fit into a slot; a word with more is not kept.
  static constexpr std::size_t kIdsMax = 16;
  // Writes the ids of word, at most kIdsMax, to ids and returns their number; 0 if not known.
  std::size_t find(std::string_view word, std::uint64_t hash, TokenId* ids) const;
  void insert(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids);

  // The same for small words, which have their own slots while they have at most four ids.
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

// Hash of a word of any size, for WordCache::find and insert.
std::uint64_t hash_of_word(std::string_view word);

}  // namespace sightline::tokenizer
