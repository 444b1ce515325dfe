// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace sightline::tokenizer {

// The largest token id. With this limit a pair of ids and the rank of a merge fit into 64 bits.
inline constexpr TokenId kTokenIdMax = (1U << 21U) - 1;

// Tokens by their id and by their bytes. Thread safety: immutable once it is filled.
class Vocabulary {
 public:
  // tokens_max is the number of tokens that add() accepts at most.
  explicit Vocabulary(std::size_t tokens_max);

  // Adds a token. Returns false if the vocabulary has the id or the content already. The id must be
  // at most kTokenIdMax.
  bool add(TokenId id, std::string content);

  // Returns the id of a token by its bytes.
  [[nodiscard]] std::optional<TokenId> find(std::string_view content) const;
  // Returns the bytes of a token, or an empty text for an unused id.
  [[nodiscard]] std::string_view content_of(TokenId id) const;
  // One more than the largest id.
  [[nodiscard]] std::size_t ids_end() const { return contents_.size(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // By id.
  std::vector<std::string> contents_;
  // A hash table of the contents, with open addressing.
  std::vector<TokenId> slots_;
  std::size_t size_ = 0;
};

// A token that the tokenizer finds in the raw text, for example a special token.
struct AddedToken {
  TokenId id = 0;
  // Not empty.
  std::string content;
};

// Finds added tokens in raw text, before normalization and pre-tokenization. Thread safety:
// immutable.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin;
    const AddedToken* token;
  };
  // Returns the leftmost match at or after `from`. Of several matches at one place it returns the
  // longest. Returns nothing without a match.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  [[nodiscard]] const AddedToken* longest_at(std::string_view rest) const;

  // The longest token comes first.
  std::vector<AddedToken> tokens_;
  // Filters that exclude most places of a text quickly.
  std::array<bool, 256> first_byte_{};
  std::optional<char> only_first_byte_;
  // A token of one byte sets the bits of all second bytes.
  std::bitset<65536> first_two_bytes_;
};

}  // namespace sightline::tokenizer
