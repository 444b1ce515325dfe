// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/keys/block_key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <blake3.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/bytes.h"
#include "common/base/check.h"

namespace sightline::keys {

namespace {

// local() hashes tokens as they lie in memory. The identity defines them as little-endian.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kModulus = (1ULL << 61U) - 1;

// A change of a context, or of the bytes hashed under it, changes every identity. The identity is a
// format between replicas and over restarts.
constexpr const char* kLocalContext = "sightline 2026 block identity: XXH3 secret";
constexpr const char* kMultiplierContext = "sightline 2026 block identity: polynomial point";
constexpr const char* kRootContext = "sightline 2026 block identity: root";
constexpr const char* kDigestContext = "sightline 2026 block identity: digest";
// Derives one secret from the identity key. Each context gives an independent secret.

void derive(const char* context, const contract::IdentityKey& key, std::span<std::uint8_t> out) {
  blake3_hasher hasher;
  blake3_hasher_init_derive_key(&hasher, context);
  blake3_hasher_update(&hasher, key.bytes.data(), key.bytes.size());
  blake3_hasher_finalize(&hasher, out.data(), out.size());
}

// Returns x mod 2^61 - 1 for any 64-bit x.
constexpr std::uint64_t reduce(std::uint64_t x) {
  x = (x & kModulus) + (x >> 61U);
  return x >= kModulus ? x - kModulus : x;
}

void store_le32(std::uint8_t* out, std::uint32_t value) { std::memcpy(out, &value, sizeof value); }

// Returns a * b + c mod 2^61 - 1 for a, b, c below the modulus.
constexpr std::uint64_t multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b + c;
  // The high part is below 2^61, so the sum of both parts fits into 62 bits.
  return reduce(static_cast<std::uint64_t>(product & kModulus) +
                static_cast<std::uint64_t>(product >> 61U));
}

// Adds a field of the root: whether it is present, its length, its bytes. With the length, two
// different lists of fields never give the same bytes.
void update_field(blake3_hasher& hasher, const std::optional<std::string>& field) {
  std::array<std::uint8_t, 9> frame{};
  frame[0] = field.has_value() ? 1 : 0;
  store_le64(frame.data() + 1, field ? field->size() : 0);
  blake3_hasher_update(&hasher, frame.data(), frame.size());
  if (field) blake3_hasher_update(&hasher, field->data(), field->size());
}

// The hashed bytes of a block with media: tokens, 20 bytes per item, the number of items, one byte
// 1. The length is odd, so they are never the bytes of a block without media. A reader could parse
// them from the end, so they have one meaning only.
struct MediaBytes {
  static constexpr std::size_t kItemBytes = 20;

  MediaBytes(std::span<const TokenId> block, std::span<const BlockMedia> media)
      : size(block.size_bytes() + media.size() * kItemBytes + 5) {
    if (size > inline_bytes.size()) spilled.resize(size);
    auto* out = bytes();
    if (!block.empty()) std::memcpy(out, block.data(), block.size_bytes());
    out += block.size_bytes();
    for (const auto& item : media) {
      store_le64(out, item.id.low);
      store_le64(out + 8, item.id.high);
      store_le32(out + 16, static_cast<std::uint32_t>(item.offset));
      out += kItemBytes;
    }
    store_le32(out, static_cast<std::uint32_t>(media.size()));
    out[4] = 1;
  }
  std::uint8_t* bytes() { return spilled.empty() ? inline_bytes.data() : spilled.data(); }

  std::size_t size;
  Bytes spilled;
  std::array<std::uint8_t, 512> inline_bytes;  // NOLINT: filled by the constructor
};

using MediaIterator = std::span<const MediaSpan>::iterator;

// Collects the items from `item` on that overlap block i.
void media_of_block(const PromptView& prompt, MediaIterator item, std::size_t i,
                    std::vector<BlockMedia>& media) {
  const auto begin = static_cast<std::int64_t>(i * prompt.block_size);
  const auto end = begin + static_cast<std::int64_t>(prompt.block_size);
  media.clear();
  for (; item != prompt.media.end() && item->start < end; ++item) {
    if (item->length <= 0) continue;
    media.push_back({.id = item->id, .offset = static_cast<std::int32_t>(item->start - begin)});
  }
}

}  // namespace

IdentifierHash identifier_hash(std::string_view identifier) {
  const auto hash = XXH3_128bits(identifier.data(), identifier.size());
  return {.low = hash.low64, .high = hash.high64};
}

Scheme::Scheme(const contract::IdentityKey& key) {
  static_assert(std::tuple_size_v<decltype(local_secret_)> >= XXH3_SECRET_SIZE_MIN);
  derive(kLocalContext, key, local_secret_);
  derive(kRootContext, key, root_key_);
  derive(kDigestContext, key, digest_key_);
  std::array<std::uint8_t, 8> point{};
  derive(kMultiplierContext, key, point);
  // A point of 0 or 1 would make keys independent of the order of blocks. Each of the two is as
  // unlikely as a correct guess of the key.
  multiplier_ = std::max<std::uint64_t>(reduce(load_le64(point.data())), 2);
}

LocalHash Scheme::local(std::span<const TokenId> block, std::span<const BlockMedia> media) const {
  if (media.empty()) [[likely]] {
    return {XXH3_64bits_withSecret(block.data(), block.size_bytes(), local_secret_.data(),
                                   local_secret_.size())};
  }
  MediaBytes bytes(block, media);
  return {XXH3_64bits_withSecret(bytes.bytes(), bytes.size, local_secret_.data(),
                                 local_secret_.size())};
}

BlockKey Scheme::root(const KeyScope& scope) const {
  blake3_hasher hasher;
  blake3_hasher_init_keyed(&hasher, root_key_.data());
  update_field(hasher, scope.model);
  update_field(hasher, scope.cache_salt);
  update_field(hasher, scope.lora);
  std::array<std::uint8_t, 8> out{};
  blake3_hasher_finalize(&hasher, out.data(), out.size());
  return {reduce(load_le64(out.data()))};
}

BlockKey Scheme::next(BlockKey parent, LocalHash local) const {
  return {multiply_add(parent.value, multiplier_, reduce(local.value))};
}

std::string Scheme::digest(BlockKey key) const {
  std::array<std::uint8_t, 8> bytes{};
  store_le64(bytes.data(), key.value);
  blake3_hasher hasher;
  blake3_hasher_init_keyed(&hasher, digest_key_.data());
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::array<std::uint8_t, 8> out{};
  blake3_hasher_finalize(&hasher, out.data(), out.size());
  return to_hex(ByteView(out));
}

BlockSequence block_keys(const Scheme& scheme, BlockKey root, const PromptView& prompt) {
  SL_CHECK(prompt.block_size > 0);
  const std::size_t size = prompt.block_size;
  const std::size_t blocks = prompt.tokens.size() / size;
  BlockSequence sequence{.block_size = prompt.block_size,
                         .prompt_tokens = prompt.tokens.size(),
                         .keys = std::vector<BlockKey>(blocks)};
  std::vector<BlockMedia> media;
  // Items before this one end before block i.
  auto item = prompt.media.begin();
  auto key = root;
  for (std::size_t i = 0; i < blocks;) {
    const auto begin = static_cast<std::int64_t>(i * size);
    while (item != prompt.media.end() && item->start + item->length <= begin) ++item;
    // Blocks up to the one in which the next item starts are plain text.
    const std::size_t text_end =
        item == prompt.media.end()
            ? blocks
            : std::min(blocks,
                       static_cast<std::size_t>(std::max(item->start, std::int64_t{0})) / size);
    for (; i < text_end; ++i) {
      key = scheme.next(key, scheme.local(prompt.tokens.subspan(i * size, size)));
      sequence.keys[i] = key;
    }
    if (i == blocks || i * size != static_cast<std::size_t>(begin)) continue;
    media_of_block(prompt, item, i, media);
    key = scheme.next(key, scheme.local(prompt.tokens.subspan(i * size, size), media));
    sequence.keys[i++] = key;
  }
  return sequence;
}

std::uint64_t usable_overlap(std::uint64_t leading_held, std::uint64_t prompt_tokens,
                             std::uint32_t block_size) {
  SL_CHECK(block_size > 0);
  if (prompt_tokens == 0) return 0;
  return std::min(leading_held, (prompt_tokens - 1) / block_size);
}

}  // namespace sightline::keys
