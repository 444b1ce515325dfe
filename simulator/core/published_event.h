// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"

// The prefix-cache events of a vLLM engine as values, before they are encoded.
namespace sightline::core {

// SHA-256 of the parent's hash, the tokens and the extra keys of one whole block.
using BlockHash = std::array<std::uint8_t, 32>;

// Returns the hash in the form of events: the last 8 bytes of the digest, big-endian. This is the
// default (vLLM 0.32 with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1).
std::uint64_t event_integer(const BlockHash& hash);

// A media item that overlaps a block. The offset is the first token of its placeholder range minus
// the first token of the block. It is negative on the blocks that continue the item.
struct MediaKey {
  std::string identifier;
  std::int64_t offset = 0;
  friend bool operator==(const MediaKey&, const MediaKey&) = default;
};

// A LoRA adapter. vLLM numbers loaded adapters from 1 on.
struct Lora {
  std::string name;
  std::uint32_t id = 1;
  friend bool operator==(const Lora&, const Lora&) = default;
};

// The properties of a block besides its tokens. An event contains them in this order: LoRA name,
// media in order of position, salt. Only the block at token 0 has the salt.
struct ExtraKeys {
  std::optional<std::string> lora_name;
  std::vector<MediaKey> media;
  std::optional<std::string> cache_salt;
  [[nodiscard]] bool empty() const { return !lora_name && media.empty() && !cache_salt; }
  friend bool operator==(const ExtraKeys&, const ExtraKeys&) = default;
};

// The group of layers that a cached block belongs to. All engines have the first group. Hybrid
// models also have the second one.
enum class CacheGroup : std::uint8_t { Full, SlidingWindow };

// Whole blocks were stored. They follow one another after `parent`, which is absent for the first
// block of a prompt. `tokens` are those of all blocks. `extra_keys` has one entry per block.
struct BlockStored {
  std::vector<BlockHash> hashes;
  std::optional<BlockHash> parent;
  std::vector<TokenId> tokens;
  std::uint32_t block_size = 0;
  std::optional<Lora> lora;
  std::vector<ExtraKeys> extra_keys;
  // The session of the request that caused it, for information only.
  std::optional<std::string> session_id;
  CacheGroup group = CacheGroup::Full;
};

// One physical copy of a block was evicted.
struct BlockRemoved {
  BlockHash hash{};
  CacheGroup group = CacheGroup::Full;
};

// All blocks were cleared.
struct AllBlocksCleared {};

using KvEvent = std::variant<BlockStored, BlockRemoved, AllBlocksCleared>;

}  // namespace sightline::core
