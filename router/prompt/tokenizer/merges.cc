// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/merges.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "common/base/check.h"

namespace sightline::tokenizer {
namespace {

constexpr unsigned kIdBits = 21;
constexpr unsigned kRankBits = 22;
constexpr std::uint64_t kFree = ~std::uint64_t{0};
static_assert(kTokenIdMax < (1U << kIdBits));
static_assert(2 * kIdBits + kRankBits == 64);

constexpr std::uint64_t pair_of(TokenId left, TokenId right) {
  return (std::uint64_t{left} << kIdBits) | right;
}

constexpr std::size_t kBytePairs = std::size_t{1} << 16U;
constexpr std::size_t pair_of_bytes(char left, char right) {
  return (std::size_t{static_cast<std::uint8_t>(left)} << 8U) | static_cast<std::uint8_t>(right);
}

// Orders the merges of a short word by their rank, and then by their place. The key without a merge
// is above all others.
constexpr std::uint32_t key_of(std::uint32_t rank, std::size_t place) {
  const std::uint32_t key = rank * std::uint32_t{MergeTable::kShortBytes};
  return rank > kTokenIdMax ? ~std::uint32_t{0} : key | static_cast<std::uint32_t>(place);
}
static_assert(std::uint64_t{kTokenIdMax} * MergeTable::kShortBytes < ~std::uint32_t{0});

// Returns the first used place after `at`, or kShortBytes.
constexpr std::size_t next_place(std::uint64_t alive, std::size_t at) {
  const std::uint64_t behind = alive & ~((std::uint64_t{2} << at) - 1);
  return static_cast<std::size_t>(std::countr_zero(behind));
}

// Fibonacci hashing (Knuth, TAOCP 6.4).
constexpr std::size_t slot_of(std::uint64_t pair, unsigned shift) {
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15ULL) >> shift);
}

constexpr bool continues(char c) { return (static_cast<std::uint8_t>(c) & 0xC0U) == 0x80U; }
constexpr bool leads_three(char c) { return (static_cast<std::uint8_t>(c) & 0xF0U) == 0xE0U; }

constexpr std::uint32_t byte_at(const char* p) { return static_cast<std::uint8_t>(*p); }
constexpr std::uint32_t character_at(const char* p) {
  return (byte_at(p) << 16U) | (byte_at(p + 1) << 8U) | byte_at(p + 2);
}

// 2^20 bits. The pairs of characters in a vocabulary of 150,000 tokens set some 5 % of them. A bit
// set by chance hides a place to cut, but never changes ids.
constexpr unsigned kPairBitsLog2 = 20;
constexpr std::size_t bit_of(std::uint32_t before, std::uint32_t behind) {
  const std::uint64_t pair = (std::uint64_t{before} << 24U) | behind;
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15ULL) >> (64U - kPairBitsLog2));
}
void set_bit(std::vector<std::uint64_t>& bits, std::size_t bit) {
  bits[bit / 64] |= std::uint64_t{1} << (bit % 64);
}
bool test_bit(const std::vector<std::uint64_t>& bits, std::size_t bit) {
  return (bits[bit / 64] >> (bit % 64) & 1U) != 0;
}

}  // namespace

WordCuts::WordCuts(const Vocabulary& vocabulary, std::span<const Merge> merges) {
  for (auto* bits : {&character_character_, &byte_character_, &character_byte_, &byte_byte_}) {
    bits->resize((std::size_t{1} << kPairBitsLog2) / 64);
  }
  for (const Merge& merge : merges) add(vocabulary.content_of(merge.result));
}

void WordCuts::add(std::string_view token) {
  for (std::size_t at = 1; at < token.size(); ++at) {
    if (!leads_three(token[at])) continue;
    std::size_t first = at - 1;
    while (first > 0 && continues(token[first])) --first;
    // The token may begin inside the character before the place, or end inside the character behind
    // it.
    const bool whole_before = leads_three(token[first]) && at - first == 3;
    const bool part_before = continues(token[first]);
    if (!whole_before && !part_before) continue;
    const char* p = token.data() + at;
    const std::uint32_t before = whole_before ? character_at(p - 3) : byte_at(p - 1);
    const bool whole_behind = token.size() - at >= 3;
    const std::uint32_t behind = whole_behind ? character_at(p) : byte_at(p);
    auto& bits = whole_before ? (whole_behind ? character_character_ : character_byte_)
                              : (whole_behind ? byte_character_ : byte_byte_);
    set_bit(bits, bit_of(before, behind));
  }
}

// Each of the four tables may contain a token across this place.
bool WordCuts::is_spanned(const char* boundary) const {
  const std::uint32_t before = character_at(boundary - 3);
  const std::uint32_t behind = character_at(boundary);
  const std::uint32_t last = byte_at(boundary - 1);
  const std::uint32_t first = byte_at(boundary);
  return test_bit(character_character_, bit_of(before, behind)) ||
         test_bit(byte_character_, bit_of(last, behind)) ||
         test_bit(character_byte_, bit_of(before, first)) ||
         test_bit(byte_byte_, bit_of(last, first));
}

std::size_t WordCuts::next(std::string_view word) const {
  bool three_before = false;
  // Only two neighbours of three bytes are tested. Other characters are skipped.
  for (std::size_t at = 0; at < word.size();) {
    const bool three = leads_three(word[at]);
    if (three && three_before && !is_spanned(word.data() + at)) return at;
    three_before = three;
    at += three ? 3 : 1;
  }
  return word.size();
}

std::optional<MergeTable> MergeTable::create(const Vocabulary& vocabulary,
                                             std::span<const Merge> merges) {
  SL_CHECK(merges.size() <= kTokenIdMax);
  MergeTable table;
  // At most two thirds of the slots are used. Searches then stay short.
  const std::size_t slots = std::bit_ceil(merges.size() + merges.size() / 2 + 2);
  table.entries_.assign(slots, kFree);
  table.hash_shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
  table.results_.reserve(merges.size());
  for (std::uint64_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const std::uint64_t pair = pair_of(merge.left, merge.right);
    std::size_t slot = slot_of(pair, table.hash_shift_);
    for (; table.entries_[slot] != kFree; slot = (slot + 1) & (slots - 1)) {
      // Two ranks for one pair would make the result depend on the order of the search.
      if (table.entries_[slot] >> kRankBits == pair) return std::nullopt;
    }
    table.entries_[slot] = (pair << kRankBits) | rank;
    table.results_.push_back(merge.result);
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto id = vocabulary.find(std::string_view(&c, 1));
    SL_CHECK(id.has_value());
    table.byte_ids_[byte] = *id;
  }
  table.byte_ranks_.resize(kBytePairs);
  for (std::size_t pair = 0; pair < kBytePairs; ++pair) {
    table.byte_ranks_[pair] =
        table.rank_of(table.byte_ids_[pair >> 8U], table.byte_ids_[pair & 0xFFU]);
  }
  return table;
}

MergeTable::Rank MergeTable::rank_of(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = entries_.size() - 1;
  std::size_t slot = slot_of(pair, hash_shift_);
  while (true) {
    const std::uint64_t entry = entries_[slot];
    if (entry >> kRankBits == pair) return static_cast<Rank>(entry & ((1U << kRankBits) - 1));
    if (entry == kFree) return kNoMerge;
    slot = (slot + 1) & mask;
  }
}

std::size_t MergeTable::encode_short(std::string_view word,
                                     std::array<TokenId, kShortBytes>& ids) const {
  SL_CHECK(!word.empty() && word.size() <= kShortBytes);
  // A symbol keeps the place of its first byte. The bits of `alive` are the used places. keys[i]
  // orders the merge of the symbol at i with the next one.
  constexpr std::size_t kLanes = 16;
  std::array<std::uint32_t, kShortBytes> keys;
  const std::size_t lanes = (word.size() + kLanes - 1) / kLanes * kLanes;
  const std::size_t last = word.size() - 1;
  std::uint64_t alive = ~std::uint64_t{0} >> (63U - last);
  for (std::size_t i = 0; i < lanes; ++i) keys[i] = kNoMerge;
  for (std::size_t i = 0; i < last; ++i) {
    const Rank rank = byte_ranks_[pair_of_bytes(word[i], word[i + 1])];
    if (rank != kNoMerge) keys[i] = key_of(rank, i);
  }
  for (std::size_t i = 0; i <= last; ++i) ids[i] = byte_ids_[static_cast<std::uint8_t>(word[i])];
  while (true) {
    std::uint32_t best = kNoMerge;
    // Finds the lowest key of all. Its steps of kLanes keys allow vector instructions.
    for (std::size_t block = 0; block < lanes; block += kLanes) {
      for (std::size_t i = 0; i < kLanes; ++i) best = std::min(best, keys[block + i]);
    }
    if (best == kNoMerge) break;
    const std::size_t at = best % kShortBytes;
    const std::size_t gone = next_place(alive, at);
    alive &= ~(std::uint64_t{1} << gone);
    keys[gone] = kNoMerge;
    ids[at] = results_[best / kShortBytes];
    const std::size_t next = next_place(alive, at);
    // The joined symbol has a new pair on each side.
    keys[at] = next == kShortBytes ? kNoMerge : key_of(rank_of(ids[at], ids[next]), at);
    const std::uint64_t before = alive & ((std::uint64_t{1} << at) - 1);
    if (before == 0) continue;
    const auto previous = 63U - static_cast<unsigned>(std::countl_zero(before));
    keys[previous] = key_of(rank_of(ids[previous], ids[at]), previous);
  }
  std::size_t size = 0;
  for (; alive != 0; alive &= alive - 1) {
    ids[size++] = ids[static_cast<std::size_t>(std::countr_zero(alive))];
  }
  return size;
}

void MergeTable::encode(std::string_view word, std::vector<TokenId>& out) const {
  if (word.size() > kShortBytes) {
    encode_long(word, out);
    return;
  }
  std::array<TokenId, kShortBytes> ids;
  const std::size_t size = encode_short(word, ids);
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(size));
}

void MergeTable::encode_long(std::string_view word, std::vector<TokenId>& out) const {
  struct Symbol {
    TokenId id;
    // The rank of the pair of this symbol and the next. kNoMerge also marks a removed symbol.
    Rank rank;
    std::uint32_t previous;
    std::uint32_t next;
  };
  const auto size = static_cast<std::uint32_t>(word.size());
  std::vector<Symbol> symbols(size);
  // A min-heap of rank << 32 | position. Outdated entries are skipped.
  std::vector<std::uint64_t> queue;
  queue.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    symbols[i] = {byte_ids_[static_cast<std::uint8_t>(word[i])], kNoMerge, i - 1, i + 1};
  }
  const auto update = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next < size ? rank_of(symbol.id, symbols[symbol.next].id) : kNoMerge;
    if (symbol.rank == kNoMerge) return false;
    queue.push_back((std::uint64_t{symbol.rank} << 32U) | at);
    return true;
  };
  for (std::uint32_t i = 0; i < size; ++i) update(i);
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    const std::uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    Symbol& symbol = symbols[at];
    // The pair has changed since this entry was added.
    if (symbol.rank != top >> 32U) continue;
    symbol.id = results_[symbol.rank];
    Symbol& gone = symbols[symbol.next];
    gone.rank = kNoMerge;
    symbol.next = gone.next;
    if (symbol.next < size) symbols[symbol.next].previous = at;
    if (update(at)) std::push_heap(queue.begin(), queue.end(), std::greater<>());
    if (at > 0 && update(symbol.previous)) {
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  }
  for (std::uint32_t at = 0; at < size; at = symbols[at].next) out.push_back(symbols[at].id);
}

}  // namespace sightline::tokenizer
