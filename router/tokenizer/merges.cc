// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/tokenizer/merges.h"

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

// Fibonacci hashing (Knuth, TAOCP 6.4).
constexpr std::size_t slot_of(std::uint64_t pair, unsigned shift) {
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15ULL) >> shift);
}

}  // namespace

std::optional<MergeTable> MergeTable::create(const Vocabulary& vocabulary,
                                             std::span<const Merge> merges) {
  SL_CHECK(merges.size() <= kTokenIdMax);
  MergeTable table;
  const std::size_t slots = std::bit_ceil(merges.size() + merges.size() / 2 + 2);
  table.entries_.assign(slots, kFree);
  table.hash_shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
  table.results_.reserve(merges.size());
  for (std::uint64_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const std::uint64_t pair = pair_of(merge.left, merge.right);
    std::size_t slot = slot_of(pair, table.hash_shift_);
    for (; table.entries_[slot] != kFree; slot = (slot + 1) & (slots - 1)) {
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
  SL_CHECK(word.size() <= kShortBytes);
  std::array<Rank, kShortBytes> ranks;  // of ids[i] with ids[i + 1]
  std::size_t size = word.size();
  for (std::size_t i = 0; i < size; ++i) ids[i] = byte_ids_[static_cast<std::uint8_t>(word[i])];
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = rank_of(ids[i], ids[i + 1]);
  while (size > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + size - 1);
    if (*best == kNoMerge) break;
    const auto at = static_cast<std::size_t>(best - ranks.begin());
    ids[at] = results_[*best];
    std::copy(ids.begin() + at + 2, ids.begin() + size, ids.begin() + at + 1);
    std::copy(ranks.begin() + at + 1, ranks.begin() + size - 1, ranks.begin() + at);
    --size;
    if (at > 0) ranks[at - 1] = rank_of(ids[at - 1], ids[at]);
    if (at + 1 < size) ranks[at] = rank_of(ids[at], ids[at + 1]);
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
    Rank rank;  // of this symbol with the next; kNoMerge too when the symbol is gone
    std::uint32_t previous;
    std::uint32_t next;
  };
  const auto size = static_cast<std::uint32_t>(word.size());
  std::vector<Symbol> symbols(size);
  std::vector<std::uint64_t> queue;  // min-heap of rank << 32 | position; stale ones are skipped
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
