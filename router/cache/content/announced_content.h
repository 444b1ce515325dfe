// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/cache/keys/block_key.h"

// The content of the blocks that an engine announces, from which their keys follow.
namespace sightline::content {

// One pair [identifier, offset] of a block's extra keys (vLLM 0.19 and later).
struct MediaReference {
  keys::IdentifierHash id;
  // Start of the item - start of the block, in tokens.
  std::int64_t offset = 0;
};

// The extra keys of one block, without the LoRA name.
struct BlockExtra {
  // In the order of the prompt.
  std::vector<MediaReference> media;
  // The cache salt, or media identifiers without offsets in old encodings.
  std::vector<std::string> strings;
  // The extra keys began with the LoRA name.
  bool names_lora = false;
  // The block has other extra keys: prompt embeds or unknown shapes. Its content is unknown.
  bool opaque = false;
};

// The content of a chain of blocks, as the engine announces it.
struct AnnouncedContent {
  // The tokens of the whole chain. 64 bits, because SGLang's media sentinels reach 2^62. A value
  // above int64 is read as -1, which no vocabulary has.
  std::vector<std::int64_t> tokens;
  // Tokens of one block. 0 in the placeholder events of offloading tiers.
  std::uint32_t block_size = 0;
  std::optional<std::string> lora_name;
  // The request has a LoRA adapter, but the encoding has no name (vLLM before 0.14).
  bool lora_unnamed = false;
  // Empty, or one for each block.
  std::vector<BlockExtra> extras;
  // The encoding gives media keys an offset. So a string without offset is a cache salt.
  bool offsets_stated = false;
  // The salt of the whole event (SGLang).
  std::optional<std::string> cache_salt;
  // A field that may name the content cannot be read. The whole chain has unknown content.
  bool unclear = false;
};

}  // namespace sightline::content
