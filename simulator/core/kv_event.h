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

// The prefix-cache events of a vLLM engine as values, before they are encoded for the wire.
namespace sightline::core {

// SHA-256 over (parent hash, tokens, extra keys) of one whole block.
using BlockHash = std::array<std::uint8_t, 32>;

// The hash as events carry it by default: the last 8 bytes of the digest, big-endian
// (vLLM 0.32 with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1).
std::uint64_t event_integer(const BlockHash& hash);

// A media item that overlaps a block. offset = first token of its placeholder range minus first
// token of the block: negative on the blocks that continue it.
struct MediaKey {
  std::string identifier;
  std::int64_t offset = 0;
  friend bool operator==(const MediaKey&, const MediaKey&) = default;
};

// A LoRA adapter. vLLM numbers loaded adapters from 1.
struct Lora {
  std::string name;
  std::uint32_t id = 1;
  friend bool operator==(const Lora&, const Lora&) = default;
};

// What besides the tokens sets a block apart. The event carries them in this order: LoRA name,
// media in order of position, salt (only on the block that starts at token 0).
struct ExtraKeys {
  std::optional<std::string> lora_name;
  std::vector<MediaKey> media;
  std::optional<std::string> cache_salt;
  [[nodiscard]] bool empty() const { return !lora_name && media.empty() && !cache_salt; }
  friend bool operator==(const ExtraKeys&, const ExtraKeys&) = default;
};

// The layers that a cached block is of: all engines have the first, hybrid models the second too.
enum class CacheGroup : std::uint8_t { Full, SlidingWindow };

// Whole blocks became available: chained in order after parent (none = first block of a prompt).
// tokens are those of all blocks, extra_keys has one entry per block.
struct BlockStored {
  std::vector<BlockHash> hashes;
  std::optional<BlockHash> parent;
  std::vector<TokenId> tokens;
  std::uint32_t block_size = 0;
  std::optional<Lora> lora;
  std::vector<ExtraKeys> extra_keys;
  std::optional<std::string> session_id;  // of the request that caused it; attribution only
  CacheGroup group = CacheGroup::Full;
};

// One physical copy of a block was evicted.
struct BlockRemoved {
  BlockHash hash{};
  CacheGroup group = CacheGroup::Full;
};

struct AllBlocksCleared {};

using KvEvent = std::variant<BlockStored, BlockRemoved, AllBlocksCleared>;

}  // namespace sightline::core
