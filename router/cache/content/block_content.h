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

// What the keys of blocks need to know about the model.
struct ContentRules {
  // Becomes KeyScope::model.
  std::string model;
  MediaTokens media;
  // Token ids are below this. 0 allows any 32 bits.
  TokenId vocabulary_size = 0;
};

// Computes the keys of the blocks in one rank's announcements from their content. It handles one
// announcement at a time.
// Thread safety: one thread at a time. The scheme must outlive it.
class BlockContent {
 public:
  BlockContent(ContentRules rules, const keys::Scheme& scheme)
      : rules_(std::move(rules)), scheme_(scheme) {}

  // Begins an announcement, to which all further calls refer. Its tokens must fit the number of its
  // blocks, and it must outlive these calls.
  void begin(const AnnouncedContent& told, const ChainStart& place);
  // Returns the key before the prompt's first block. Empty if the salt or the adapter is not
  // certain.
  [[nodiscard]] std::optional<keys::BlockKey> root() const;
  // Returns the key of block i, whose parent has the key `parent`. Empty if its content is not
  // certain.
  std::optional<keys::BlockKey> key_of(std::size_t i, keys::BlockKey parent);
  // Returns the item that reaches the end of block i. Empty if the extra keys have offsets.
  [[nodiscard]] std::optional<OpenItem> open_after(std::size_t i) const;

  // Forgets what earlier announcements showed about the encoding. The next announcement may come
  // from another engine version.
  void forget_encoding() { tells_offsets_ = false; }

 private:
  // Read block i into the scratch members below. False if its content is not certain.
  bool read_tokens(std::size_t i);
  bool read_media(std::size_t i);
  [[nodiscard]] bool has_media_token(std::size_t i) const;
  [[nodiscard]] std::span<const std::int64_t> tokens_of(std::size_t i) const;

  const ContentRules rules_;
  const keys::Scheme& scheme_;
  // An announcement showed that media keys have offsets.
  bool tells_offsets_ = false;
  const AnnouncedContent* told_ = nullptr;
  // The announcement begins at the prompt's first token.
  bool is_first_ = false;
  // Set if media may be named without offsets.
  std::optional<BareReading> bare_;
  // Scratch: the tokens of one block.
  std::vector<TokenId> block_tokens_;
  // Scratch: the media of one block.
  std::vector<keys::BlockMedia> block_media_;
};

}  // namespace sightline::content
