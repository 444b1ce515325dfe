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

#include "router/prompt/tokenizer/model_file.h"

namespace sightline::tokenizer {

// Byte-pair encoding of one word: start from its bytes, and as long as any two neighbours have a
// merge, join the pair of lowest rank, of equal ones the leftmost.
// Thread safety: immutable; any thread.
class MergeTable {
 public:
  // Nothing if a pair occurs twice. The vocabulary has a token for every byte.
  static std::optional<MergeTable> create(const Vocabulary& vocabulary,
                                          std::span<const Merge> merges);

  // Appends the ids of word. n log n for a word of n bytes.
  void encode(std::string_view word, std::vector<TokenId>& out) const;

  // Words up to this size are solved in place.
  static constexpr std::size_t kShortBytes = 64;
  // The ids of a word of 1 to kShortBytes bytes; returns their number.
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
  std::vector<Rank> byte_ranks_;  // of each pair of bytes
};

// Places between two characters of three bytes (Chinese, Japanese, Korean, Thai, …) that no token
// spans: byte-pair encoding never looks across them, so that a word can be cut there. Texts
// without blanks fall into pieces that repeat.
// Thread safety: immutable; any thread.
class WordCuts {
 public:
  // Knows the tokens that the merges make.
  WordCuts(const Vocabulary& vocabulary, std::span<const Merge> merges);

  // The first such place in a word of valid UTF-8; the word's size if there is none. Some places
  // are missed.
  [[nodiscard]] std::size_t next(std::string_view word) const;

 private:
  void add(std::string_view token);
  [[nodiscard]] bool is_spanned(const char* boundary) const;

  // Bits of hashed pairs: the character before and the one behind; of a token that begins or ends
  // inside a character, only the last byte before or the first byte behind.
  std::vector<std::uint64_t> character_character_;
  std::vector<std::uint64_t> byte_character_;
  std::vector<std::uint64_t> character_byte_;
  std::vector<std::uint64_t> byte_byte_;
};

}  // namespace sightline::tokenizer
