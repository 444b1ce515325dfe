// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "common/base/check.h"

namespace sightline::tokenizer {
namespace {

constexpr TokenId kFree = ~TokenId{0};

std::size_t two_bytes(char first, char second) {
  return (std::size_t{static_cast<std::uint8_t>(first)} << 8U) | static_cast<std::uint8_t>(second);
}

}  // namespace

Vocabulary::Vocabulary(std::size_t tokens_max) : slots_(std::bit_ceil(2 * tokens_max + 2), kFree) {}

bool Vocabulary::add(TokenId id, std::string content) {
  // The table stays at most half full, and so every search ends.
  SL_CHECK(id <= kTokenIdMax && 2 * size_ < slots_.size());
  if (id < contents_.size() && !contents_[id].empty()) return false;
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(content)&mask;
  // The contents are compared, because two contents may have one hash.
  for (; slots_[slot] != kFree; slot = (slot + 1) & mask) {
    if (contents_[slots_[slot]] == content) return false;
  }
  slots_[slot] = id;
  if (id >= contents_.size()) contents_.resize(id + 1);
  contents_[id] = std::move(content);
  ++size_;
  return true;
}

std::optional<TokenId> Vocabulary::find(std::string_view content) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(content)&mask;
  for (; slots_[slot] != kFree; slot = (slot + 1) & mask) {
    if (contents_[slots_[slot]] == content) return slots_[slot];
  }
  return std::nullopt;
}

std::string_view Vocabulary::content_of(TokenId id) const {
  return id < contents_.size() ? std::string_view(contents_[id]) : std::string_view();
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  // The longest token comes first, because it has priority over its prefixes.
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() > b.content.size();
  });
  for (const AddedToken& token : tokens_) {
    SL_CHECK(!token.content.empty());
    const char first = token.content[0];
    first_byte_[static_cast<std::uint8_t>(first)] = true;
    for (std::size_t second = 0; second < 256; ++second) {
      const bool one = token.content.size() == 1;
      if (!one && static_cast<std::uint8_t>(token.content[1]) != second) continue;
      first_two_bytes_.set(two_bytes(first, static_cast<char>(second)));
    }
  }
  if (std::count(first_byte_.begin(), first_byte_.end(), true) == 1) {
    only_first_byte_ = tokens_[0].content[0];
  }
}

const AddedToken* AddedTokens::longest_at(std::string_view rest) const {
  if (rest.size() > 1 && !first_two_bytes_.test(two_bytes(rest[0], rest[1]))) return nullptr;
  for (const AddedToken& token : tokens_) {
    // The second byte excludes nearly all tokens. Tags of markup have their first byte in common.
    const std::string& content = token.content;
    if (content.size() > 1 && rest.size() > 1 && content[1] != rest[1]) continue;
    if (rest.starts_with(content)) return &token;
  }
  return nullptr;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    // All special tokens of the Qwen models begin with '<'. The search for one byte is the fastest.
    if (only_first_byte_) {
      at = text.find(*only_first_byte_, at);
      if (at == std::string_view::npos) return std::nullopt;
    } else if (!first_byte_[static_cast<std::uint8_t>(text[at])]) {
      continue;
    }
    if (const AddedToken* token = longest_at(text.substr(at))) return Match{at, token};
  }
  return std::nullopt;
}

}  // namespace sightline::tokenizer
