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

// Byte-pair encoding of one word. It begins with the bytes of the word. While any two neighbours
// have a merge, it joins the pair of lowest rank. Of several pairs with this rank it joins the
// leftmost.
//
// Thread safety: immutable, any thread may use it.
class MergeTable {
 public:
  // Returns nothing if a pair occurs twice. The vocabulary must have a token for every byte.
  static std::optional<MergeTable> create(const Vocabulary& vocabulary,
                                          std::span<const Merge> merges);

  // Appends the ids of a word. The time is n log n for a word of n bytes.
  void encode(std::string_view word, std::vector<TokenId>& out) const;

  // encode_short() takes words up to this size, in bytes. It needs no memory from the heap.
  static constexpr std::size_t kShortBytes = 64;
  // Writes the ids of a word of 1 to kShortBytes bytes. Returns their number.
  std::size_t encode_short(std::string_view word, std::array<TokenId, kShortBytes>& ids) const;

 private:
  using Rank = std::uint32_t;
  static constexpr Rank kNoMerge = ~Rank{0};

  MergeTable() = default;
  [[nodiscard]] Rank rank_of(TokenId left, TokenId right) const;
  void encode_long(std::string_view word, std::vector<TokenId>& out) const;

  // A hash table with open addressing. An entry contains left (21 bits), right (21 bits) and rank
  // (22 bits). A free entry has all bits set.
  std::vector<std::uint64_t> entries_;
  unsigned hash_shift_ = 0;
  // The result of each merge, by its rank.
  std::vector<TokenId> results_;
  std::array<TokenId, 256> byte_ids_{};
  // The rank of each pair of bytes. Every word needs them in its first step.
  std::vector<Rank> byte_ranks_;
};

// Finds places where a word can be cut without a change of its ids. These places are between two
// characters of three bytes (Chinese, Japanese, Korean, Thai, …) that no token spans. Byte-pair
// encoding never joins anything across them. Texts without blanks are thus cut into parts that
// occur repeatedly, which the word cache keeps.
//
// Thread safety: immutable, any thread may use it.
class WordCuts {
 public:
  // Reads the tokens that the merges make.
  WordCuts(const Vocabulary& vocabulary, std::span<const Merge> merges);

  // Returns the first of these places in a word of valid UTF-8, or the word's size. It misses some
  // places, because it looks hashes up.
  [[nodiscard]] std::size_t next(std::string_view word) const;

 private:
  void add(std::string_view token);
  [[nodiscard]] bool is_spanned(const char* boundary) const;

  // Bits of hashed pairs: the character before the place and the character behind it. A token may
  // begin or end inside a character. Then the pair has the last byte before the place, or the first
  // byte behind it.
  std::vector<std::uint64_t> character_character_;
  std::vector<std::uint64_t> byte_character_;
  std::vector<std::uint64_t> character_byte_;
  std::vector<std::uint64_t> byte_byte_;
};

}  // namespace sightline::tokenizer
