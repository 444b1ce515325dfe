// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"

#include "router/cache/content/announced_content.h"
#include "router/cache/keys/block_key.h"

namespace sightline::content {

// A media item that reaches the end of a block.
struct OpenItem {
  keys::IdentifierHash id;
  std::int32_t start = 0;  // start of the item - end of the block; negative
};

// Where a chain of blocks begins.
struct ChainStart {
  bool is_first = false;         // at the prompt's first token
  std::optional<OpenItem> open;  // reaches the end of its parent, if one does
};

// Tokens that stand for media in a model's prompts.
struct MediaTokens {
  std::vector<TokenId> all;
  // Of all: each item of these kinds is one run of its token, wrapper tokens apart.
  std::vector<TokenId> runs;
};

// The leading blocks of one store whose media are certain; what follows is not.
struct BareReading {
  struct Block {
    std::vector<keys::BlockMedia> media;
    std::optional<OpenItem> open;  // at its end
  };
  std::vector<Block> blocks;
  std::optional<std::string> cache_salt;
};

// Reads extra keys that name media by identifiers without offsets (vLLM 0.17 and 0.18). A block
// lists the items that overlap it in the order of the prompt; the prompt's first block ends with
// the salt, if there is one. Where an item lies is told by its run of placeholder tokens, so:
// - As many strings as runs name them one by one. At the first block one string more is the salt;
//   so a salt that equals the identifier of a picture, beside a placeholder that stands for none,
//   can be taken for that picture.
// - A run that began before the block goes on under the identifier it began with.
// - Anything else is not certain, nor what follows it: placeholders that stand for no item, items
//   without a token between them, kinds of media that are not one run. Where the identifiers of a
//   run contradict each other, no block of the store is certain.
//
// extras are given for every block. Pure.
BareReading read_bare_identifiers(const AnnouncedContent& told, const MediaTokens& tokens,
                                  const ChainStart& place);

}  // namespace sightline::content
