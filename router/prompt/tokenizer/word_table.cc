// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/word_table.h"

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/check.h"

namespace sightline::tokenizer {

WordTable::WordTable(const Vocabulary& vocabulary, const MergeTable& merges) {
  const std::size_t buckets = std::bit_ceil(vocabulary.size() / 2 + 2);
  buckets_.resize(buckets);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(buckets));
  std::array<TokenId, MergeTable::kShortBytes> ids;
  // Frequent tokens have small ids. They come first, and so they get the places.
  for (TokenId id = 0; id < vocabulary.ids_end(); ++id) {
    const std::string_view content = vocabulary.content_of(id);
    if (content.empty() || content.size() > SmallWord::kSizeMax) continue;
    const SmallWord word = SmallWord::of(content, content.data() + content.size());
    Bucket& bucket = buckets_[word.hash() >> shift_];
    const auto free = std::find(bucket.words.begin(), bucket.words.end(), SmallWord{});
    if (free == bucket.words.end()) continue;
    // Byte-pair encoding cannot make some tokens of the vocabulary. They never are the result for a
    // word.
    if (merges.encode_short(content, ids) != 1 || ids[0] != id) continue;
    bucket.ids[static_cast<std::size_t>(free - bucket.words.begin())] = id;
    *free = word;
  }
}

WordCache::WordCache()
    : small_(std::size_t{1} << (64 - kSmallShift)), large_(std::size_t{1} << (64 - kLargeShift)) {}

std::size_t WordCache::find(std::string_view word, std::uint64_t hash, TokenId* ids) const {
  const LargeSlot& slot = large_[hash >> kLargeShift];
  // The bytes are compared, because two words may have one hash.
  if (slot.size != word.size() || std::memcmp(slot.bytes.data(), word.data(), slot.size) != 0) {
    return 0;
  }
  std::copy_n(slot.ids.begin(), slot.count, ids);
  return slot.count;
}

void WordCache::insert(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids) {
  LargeSlot& slot = large_[hash >> kLargeShift];
  if (word.empty() || word.size() > slot.bytes.size() || ids.size() > slot.ids.size()) return;
  slot.size = static_cast<std::uint8_t>(word.size());
  slot.count = static_cast<std::uint8_t>(ids.size());
  std::copy(word.begin(), word.end(), slot.bytes.begin());
  std::copy(ids.begin(), ids.end(), slot.ids.begin());
}

void WordCache::insert_small(const SmallWord& word, std::uint64_t hash,
                             std::span<const TokenId> ids) {
  if (ids.empty() || ids.size() > kSmallIdsMax) return;
  SmallSlot& slot = small_[hash >> kSmallShift];
  slot.word = word;
  std::copy(ids.begin(), ids.end(), slot.ids.begin());
  slot.ids[0] |= static_cast<TokenId>(ids.size() << kCountShift);
}

std::uint64_t hash_of_word(std::string_view word) { return XXH3_64bits(word.data(), word.size()); }

}  // namespace sightline::tokenizer
