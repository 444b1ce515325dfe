// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/contract/identity_key.h"

// Block keys: the one rule by which requests and KV events name a block of a prompt. Both use these
// functions, so the same block gets the same key from both.
// Thread safety: all functions are pure. Any thread may call them. They do not fail.
namespace sightline::keys {

// Names a prompt from its first token to the end of one block. Below 2^61 - 1.
using BlockKey = StrongId<struct BlockKeyTag, std::uint64_t>;
// Names the content of one block alone, independent of its position in the prompt.
using LocalHash = StrongId<struct LocalHashTag, std::uint64_t>;

// XXH3-128 of a media item's identifier string: the router's own identifiers and those of others.
struct IdentifierHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const IdentifierHash&, const IdentifierHash&) = default;
};
IdentifierHash identifier_hash(std::string_view identifier);

// A media item in an expanded prompt: `length` token positions from `start` on. Both are counted in
// the whole prompt. The range is the whole placeholder range, with the wrapper tokens inside it.
// This is the range that vLLM 0.32 tests for overlap when it hashes blocks.
struct MediaSpan {
  IdentifierHash id;
  std::int64_t start = 0;
  std::int64_t length = 0;
};

// A media item as one block sees it: offset = start of the item - start of the block. The offset is
// negative if the item began in an earlier block. vLLM's extra_keys has the same pair since 0.19.
struct BlockMedia {
  IdentifierHash id;
  std::int32_t offset = 0;
};

// Separates prompts of one process whose tokens are equal. Different scopes have different roots.
struct KeyScope {
  std::string model;
  std::optional<std::string> cache_salt = std::nullopt;
  // The name of the LoRA adapter.
  std::optional<std::string> lora = std::nullopt;
};

// The keyed functions of one deployment, all derived from its identity key:
// - local() is XXH3-64 under a secret of 192 bytes.
// - next() is parent * r + local mod 2^61 - 1. This is a polynomial over a secret point r. Two
//   different sequences of n local hashes therefore collide with probability at most n / 2^61.
// - BLAKE3's key derivation gives the secret, r and the keys of root() and digest(), each under its
//   own context string.
//
// Thread safety: immutable.
class Scheme {
 public:
  explicit Scheme(const contract::IdentityKey& key);

  // Hashes the content of one block. `media` holds the items that overlap the block, in the order
  // of the prompt. Tokens that spell an image give another hash than the image.
  [[nodiscard]] LocalHash local(std::span<const TokenId> block,
                                std::span<const BlockMedia> media = {}) const;
  // Returns the parent of a prompt's first block. Model, salt and adapter enter all keys here.
  [[nodiscard]] BlockKey root(const KeyScope& scope) const;
  // Returns the key of the block whose content is `local`, after the block `parent`.
  [[nodiscard]] BlockKey next(BlockKey parent, LocalHash local) const;

  // Returns 16 lower-case hexadecimal digits that name a key to a client. The digest is keyed and
  // one-way, so it does not reveal the key. Equal keys have equal digests.
  [[nodiscard]] std::string digest(BlockKey key) const;

 private:
  // XXH3's own default secret has this length.
  std::array<std::uint8_t, 192> local_secret_{};
  std::array<std::uint8_t, 32> root_key_{};
  std::array<std::uint8_t, 32> digest_key_{};
  // The point r.
  std::uint64_t multiplier_ = 0;
};

// An expanded prompt. `media` is in the order of the prompt, and its items do not overlap. An item
// of length 0 or outside the prompt touches no block. `block_size` is in tokens and above 0.
struct PromptView {
  std::span<const TokenId> tokens;
  std::span<const MediaSpan> media;
  std::uint32_t block_size = 0;
};

// The keys of a prompt's whole blocks. A partial last block has no key.
struct BlockSequence {
  // Tokens of one block.
  std::uint32_t block_size = 0;
  std::size_t prompt_tokens = 0;
  // prompt_tokens / block_size keys, in the order of the prompt.
  std::vector<BlockKey> keys;
};
// Computes the keys of all whole blocks of a prompt. `root` comes from Scheme::root().
BlockSequence block_keys(const Scheme& scheme, BlockKey root, const PromptView& prompt);

// Returns how many leading blocks an engine can reuse. The engine computes at least a prompt's last
// token again, so the block with that token never counts. In vLLM, hits are at most (n - 1) /
// block_size. `leading_held` counts the held blocks from the first one on. `block_size` is above 0.
// An empty prompt gives 0.
[[nodiscard]] std::uint64_t usable_overlap(std::uint64_t leading_held, std::uint64_t prompt_tokens,
                                           std::uint32_t block_size);

}  // namespace sightline::keys
