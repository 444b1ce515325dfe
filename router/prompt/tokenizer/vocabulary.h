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

// Largest token id, so that a pair of ids and a merge rank fit into 64 bits.
inline constexpr TokenId kTokenIdMax = (1U << 21U) - 1;

// Tokens by id and by the bytes they stand for.
// Thread safety: immutable once filled.
class Vocabulary {
 public:
  explicit Vocabulary(std::size_t tokens_max);

  // False if the id or the content is there already. id <= kTokenIdMax; at most tokens_max adds.
  bool add(TokenId id, std::string content);

  [[nodiscard]] std::optional<TokenId> find(std::string_view content) const;
  // Empty for an id that is not in use.
  [[nodiscard]] std::string_view content_of(TokenId id) const;
  // One more than the largest id.
  [[nodiscard]] std::size_t ids_end() const { return contents_.size(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::vector<std::string> contents_;  // by id
  std::vector<TokenId> slots_;         // open addressing over the content's hash
  std::size_t size_ = 0;
};

struct AddedToken {
  TokenId id = 0;
  std::string content;  // not empty
};

// Finds added tokens in raw text, before anything else looks at it.
// Thread safety: immutable.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin;
    const AddedToken* token;
  };
  // The leftmost match from offset `from` on, and there the longest; nothing if none.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  [[nodiscard]] const AddedToken* longest_at(std::string_view rest) const;

  std::vector<AddedToken> tokens_;  // longest first
  std::array<bool, 256> first_byte_{};
  std::optional<char> only_first_byte_;
  std::bitset<65536> first_two_bytes_;  // all second bytes for a token of one byte
};

}  // namespace sightline::tokenizer
