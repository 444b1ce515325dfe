// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"

#include "router/cache/content/announced_content.h"
#include "router/cache/content/bare_identifiers.h"
#include "router/cache/keys/block_key.h"

namespace sightline::content {

// What the model's prompts are made of.
struct ContentRules {
  std::string model;  // goes into Scope::model
  MediaTokens media;
  TokenId vocabulary_size = 0;  // token ids are below this; 0: any 32 bits
};

// Names the blocks of one rank's announcements by their content, one announcement at a time.
// Thread safety: none. The scheme outlives it.
class BlockContent {
 public:
  BlockContent(ContentRules rules, const keys::Scheme& scheme)
      : rules_(std::move(rules)), scheme_(scheme) {}

  // What follows is about these blocks, whose tokens fit their number. They outlive the calls
  // below.
  void begin(const AnnouncedContent& told, const ChainStart& place);
  // The key in front of the prompt's first block; nothing: salt or adapter are not certain.
  [[nodiscard]] std::optional<keys::BlockKey> root() const;
  // The key of block i; nothing: its content is not certain.
  std::optional<keys::BlockKey> key_of(std::size_t i, keys::BlockKey parent);
  // The item that reaches the end of block i, where extra keys tell no offsets.
  [[nodiscard]] std::optional<OpenItem> open_after(std::size_t i) const;

  // What comes next may be of another engine version.
  void forget_encoding() { tells_offsets_ = false; }

 private:
  // Fill the scratch of block i; false: not certain.
  bool read_tokens(std::size_t i);
  bool read_media(std::size_t i);
  [[nodiscard]] bool has_media_token(std::size_t i) const;
  [[nodiscard]] std::span<const std::int64_t> tokens_of(std::size_t i) const;

  const ContentRules rules_;
  const keys::Scheme& scheme_;
  bool tells_offsets_ = false;  // so some announcement showed
  const AnnouncedContent* told_ = nullptr;
  bool is_first_ = false;                      // they begin at the prompt's first token
  std::optional<BareReading> bare_;            // where media may be named without offsets
  std::vector<TokenId> block_tokens_;          // scratch: tokens of one block
  std::vector<keys::BlockMedia> block_media_;  // scratch: its media
};

}  // namespace sightline::content
