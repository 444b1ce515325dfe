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

// Block identity: the one rule by which requests and engines' events name a block of a prompt.
// Pure: every function is a function of its arguments, may run on any thread, and does not fail.
namespace sightline::keys {

// Identity of a prompt from its first token to the end of one block: below 2^61 - 1.
using BlockKey = StrongId<struct BlockKeyTag, std::uint64_t>;
// Identity of the content of one block alone, wherever it stands.
using LocalHash = StrongId<struct LocalHashTag, std::uint64_t>;

// XXH3-128 of a media item's identifier string, ours or any other.
struct IdentifierHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const IdentifierHash&, const IdentifierHash&) = default;
};
IdentifierHash identifier_hash(std::string_view identifier);

// A media item in an expanded prompt: `length` token positions from `start` on, both counted in
// the whole prompt. The whole placeholder range counts, wrapper tokens inside it included (vLLM
// 0.32: the range that block hashing tests for overlap).
struct MediaSpan {
  IdentifierHash id;
  std::int64_t start = 0;
  std::int64_t length = 0;
};

// A media item as one block sees it: offset = start of the item - start of the block; negative
// where the item began in an earlier block. The same pair as in vLLM's extra_keys since 0.19.
struct BlockMedia {
  IdentifierHash id;
  std::int32_t offset = 0;
};

// What separates the prompts of one process from each other besides their tokens.
struct KeyScope {
  std::string model;
  std::optional<std::string> cache_salt = std::nullopt;
  std::optional<std::string> lora = std::nullopt;  // the adapter's name
};

// The keyed functions of one deployment.
//
// local: XXH3-64 under a 192-byte secret. next: parent * r + local mod 2^61 - 1, a polynomial
// over a secret point, so two different sequences of n local hashes meet with probability at most
// n / 2^61. The secret, r, the roots and the digests come from the identity key by BLAKE3's key
// derivation, each under its own context string.
// Thread safety: immutable.
class Scheme {
 public:
  explicit Scheme(const contract::IdentityKey& key);

  // media: the items that overlap the block, in the order of the prompt.
  [[nodiscard]] LocalHash local(std::span<const TokenId> block,
                                std::span<const BlockMedia> media = {}) const;
  // The key in front of the first block.
  [[nodiscard]] BlockKey root(const KeyScope& scope) const;
  [[nodiscard]] BlockKey next(BlockKey parent, LocalHash local) const;

  // 16 lower-case hexadecimal digits that name the key to a client without revealing it: keyed
  // and one-way. Equal keys have equal digests.
  [[nodiscard]] std::string digest(BlockKey key) const;

 private:
  std::array<std::uint8_t, 192> local_secret_{};  // XXH3's own default secret has this length
  std::array<std::uint8_t, 32> root_key_{};
  std::array<std::uint8_t, 32> digest_key_{};
  std::uint64_t multiplier_ = 0;  // r
};

// An expanded prompt. media in the order of the prompt, not overlapping; an item of length 0 or
// outside the prompt touches no block. block_size in tokens, > 0.
struct PromptView {
  std::span<const TokenId> tokens;
  std::span<const MediaSpan> media;
  std::uint32_t block_size = 0;
};

// The keys of a prompt's whole blocks; a partial last block has none.
struct BlockSequence {
  std::uint32_t block_size = 0;  // tokens
  std::size_t prompt_tokens = 0;
  std::vector<BlockKey> keys;  // prompt_tokens / block_size of them
};
BlockSequence block_keys(const Scheme& scheme, BlockKey root, const PromptView& prompt);

// The overlap in blocks that an engine can use: it recomputes at least a prompt's last token, so
// the block holding that token never counts (vLLM: hits are at most (n - 1) / block_size).
// leading_held: blocks held from the first one on. block_size > 0; an empty prompt gives 0.
[[nodiscard]] std::uint64_t usable_overlap(std::uint64_t leading_held, std::uint64_t prompt_tokens,
                                           std::uint32_t block_size);

}  // namespace sightline::keys
