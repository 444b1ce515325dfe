// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

#include "router/tokenizer/model_file.h"

namespace sightline::tokenizer {

// Byte-pair encoding of one word: start from its bytes, and as long as any two neighbours have a
// merge, join the pair of lowest rank, of equal ones the leftmost.
// Thread safety: immutable; any thread.
class MergeTable {
 public:
  // Nothing if a pair occurs twice. The vocabulary has a token for every byte.
  static std::optional<MergeTable> create(const Vocabulary& vocabulary,
                                          std::span<const Merge> merges);

  // Appends the ids of word. Time n² up to kShortBytes, above it n log n.
  void encode(std::string_view word, std::vector<TokenId>& out) const;

  // Words up to this size are solved in place.
  static constexpr std::size_t kShortBytes = 64;
  // The ids of a word of at most kShortBytes bytes; returns their number.
  std::size_t encode_short(std::string_view word, std::array<TokenId, kShortBytes>& ids) const;

 private:
  using Rank = std::uint32_t;
  static constexpr Rank kNoMerge = ~Rank{0};

  MergeTable() = default;
  [[nodiscard]] Rank rank_of(TokenId left, TokenId right) const;
  void encode_long(std::string_view word, std::vector<TokenId>& out) const;

  // Open addressing. An entry is left (21 bits), right (21 bits), rank (22 bits); all ones = free.
  std::vector<std::uint64_t> entries_;
  unsigned hash_shift_ = 0;
  std::vector<TokenId> results_;  // by rank
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace sightline::tokenizer
