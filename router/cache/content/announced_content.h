// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/cache/keys/block_key.h"

// What the blocks that an engine announces hold, and the keys that follow from it.
namespace sightline::content {

// One pair [identifier, offset] of a block's extra keys (vLLM 0.19 and later).
struct MediaReference {
  keys::IdentifierHash id;
  std::int64_t offset = 0;  // start of the item - start of the block
};

// The extra keys of one block, the LoRA name left out.
struct BlockExtra {
  std::vector<MediaReference> media;  // in the order of the prompt
  std::vector<std::string> strings;   // cache salt, or bare media identifiers in old encodings
  bool names_lora = false;            // began with the LoRA name
  bool opaque = false;                // holds something else: prompt embeds, unknown shapes
};

// The content of a chain of blocks, as the engine tells it.
struct AnnouncedContent {
  // Of the whole range. 64 bits: SGLang's media sentinels reach 2^62. A value above int64 is
  // read as -1, which no vocabulary holds.
  std::vector<std::int64_t> tokens;
  std::uint32_t block_size = 0;  // tokens; 0 in placeholder events of offloading tiers
  std::optional<std::string> lora_name;
  bool lora_unnamed = false;  // a LoRA request, but the encoding has no name (vLLM before 0.14)
  std::vector<BlockExtra> extras;  // empty, or one per block
  // The encoding gives media keys an offset, so a bare string is a cache salt.
  bool offsets_stated = false;
  std::optional<std::string> cache_salt;  // of the whole event (SGLang)
  bool unclear = false;                   // a field that may name the content cannot be read
};

}  // namespace sightline::content
