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
  // Start of the item - end of the block, in tokens. Negative.
  std::int32_t start = 0;
};

// The place where a chain of blocks begins.
struct ChainStart {
  // The chain begins at the prompt's first token.
  bool is_first = false;
  // The item that reaches the end of the chain's parent. Empty if no item does.
  std::optional<OpenItem> open;
};

// The placeholder tokens of media in a model's prompts.
struct MediaTokens {
  std::vector<TokenId> all;
  // A subset of `all`. Each item of these kinds is one run of its token, apart from wrapper tokens.
  std::vector<TokenId> runs;
};

// The leading blocks of one store whose media are certain. The media of the other blocks are not
// certain.
struct BareReading {
  struct BlockReading {
    std::vector<keys::BlockMedia> media;
    // The item that reaches the end of the block.
    std::optional<OpenItem> open;
  };
  std::vector<BlockReading> blocks;
  std::optional<std::string> cache_salt;
};

// Reads extra keys that name media by identifiers without offsets (vLLM 0.17 and 0.18). A block
// lists the items that overlap it, in the order of the prompt. The prompt's first block ends with
// the salt, if there is one. The run of placeholder tokens shows where an item is:
// - If a block has as many strings as runs, each string names one run. At the first block, one more
//   string is the salt. A salt may equal a picture's identifier while the block has a placeholder
//   that belongs to no picture. The salt can then be read as that picture.
// - A run that began before the block has the identifier with which it began.
// - Anything else is not certain, and neither are the blocks after it. Examples are placeholders
//   that belong to no item, items without a token between them, and kinds of media that are not one
//   run.
// - If the identifiers of a run contradict each other, no block of the store is certain.
//
// `told` has extras for every block. Pure.
BareReading read_bare_identifiers(const AnnouncedContent& told, const MediaTokens& tokens,
                                  const ChainStart& place);

}  // namespace sightline::content
