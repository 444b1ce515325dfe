// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Stores of vLLM 0.17 and 0.18. Their extra keys name pictures without offsets.
#include <algorithm>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

namespace sightline::events {
namespace {

using operations::Tier;
using Strings = std::vector<std::string>;

constexpr CacheId kEngine{6};
constexpr std::uint32_t kBlockSize = 4;
constexpr TokenId kPad = 900;    // a picture's placeholder
constexpr TokenId kVideo = 901;  // a video's
constexpr std::int64_t P = kPad;
constexpr std::int64_t V = kVideo;

EngineHash hash(std::uint64_t value) { return {.low = value, .high = 1}; }

// Blocks with consecutive hashes, and one list of strings for each.
BlockStored stored(std::uint64_t first_hash, std::vector<std::int64_t> tokens,
                   const std::vector<Strings>& strings,
                   std::optional<std::uint64_t> parent = std::nullopt) {
  BlockStored event;
  for (std::size_t i = 0; i < strings.size(); ++i) event.hashes.push_back(hash(first_hash + i));
  if (parent) event.parent = hash(*parent);
  event.tokens = std::move(tokens);
  event.block_size = kBlockSize;
  for (const auto& block : strings) event.extras.push_back({.media = {}, .strings = block});
  return event;
}

struct Picture {
  std::string identifier;
  std::int64_t start = 0;
  std::int64_t length = 0;
};

class BareIdentifiers : public testing::Test {
 protected:
  template <class... Events>
  void apply(Events... events) {
    state.apply({.timestamp_s = 1, .rank = 0, .events = {KvEvent(std::move(events))...}});
  }
  // Leading blocks of this prompt that the index holds.
  [[nodiscard]] std::uint32_t held(const std::vector<std::int64_t>& tokens,
                                   const std::vector<Picture>& pictures,
                                   const std::optional<std::string>& salt = std::nullopt,
                                   const std::optional<std::string>& lora = std::nullopt) const {
    const std::vector<TokenId> ids(tokens.begin(), tokens.end());
    std::vector<keys::MediaSpan> media;
    for (const auto& picture : pictures) {
      media.push_back({keys::identifier_hash(picture.identifier), picture.start, picture.length});
    }
    const auto root = scheme.root({.model = "m", .cache_salt = salt, .lora = lora});
    const auto sequence =
        keys::block_keys(scheme, root, {.tokens = ids, .media = media, .block_size = kBlockSize});
    return index.match(sequence.keys).of(kEngine).gpu_blocks;
  }
  [[nodiscard]] std::size_t blocks() const { return index.held(kEngine, Tier::Gpu).size(); }

  const NormaliserOptions options{
      .id = kEngine, .model = "m", .media_tokens = {kPad, kVideo}, .run_tokens = {kPad}};
  keys::Scheme scheme{contract::development_identity_key()};
  index::ExactIndex index;
  test::IndexedNormaliser state{options, scheme, index};
};

TEST_F(BareIdentifiers, EachRunOfABlockIsThePictureInItsPlace) {
  const std::vector<std::int64_t> tokens = {1, P, 2, P, 3, 4, 5, 6};
  apply(stored(1, tokens, {{"a", "b"}, {}}));
  EXPECT_EQ(held(tokens, {{"a", 1, 1}, {"b", 3, 1}}), 2U);
  EXPECT_EQ(held(tokens, {{"b", 1, 1}, {"a", 3, 1}}), 0U);
  EXPECT_EQ(state.statistics().unknown_content, 0U);
}

TEST_F(BareIdentifiers, OneExtraStringIsTheSaltOfTheFirstBlock) {
  const std::vector<std::int64_t> tokens = {1, P, P, 2, 3, 4, 5, 6};
  apply(stored(1, tokens, {{"a", "tenant"}, {}}));
  EXPECT_EQ(held(tokens, {{"a", 1, 2}}, "tenant"), 2U);
  EXPECT_EQ(held(tokens, {{"a", 1, 2}}), 0U);
  apply(stored(11, {1, 2, 3, 4}, {{"tenant"}}));
  EXPECT_EQ(held({1, 2, 3, 4}, {}, "tenant"), 1U);
}

TEST_F(BareIdentifiers, RunContinuesAcrossBlocksAndStores) {
  const std::vector<std::int64_t> tokens = {1, 2, P, P, P, P, P, P, P, P, P, P, P, 3, 4, P};
  apply(stored(1, {tokens.begin(), tokens.begin() + 8}, {{"a"}, {"a"}}));
  apply(stored(3, {tokens.begin() + 8, tokens.begin() + 12}, {{"a"}}, 2));
  apply(stored(4, {tokens.begin() + 12, tokens.end()}, {{"a", "b"}}, 3));
  EXPECT_EQ(held(tokens, {{"a", 2, 11}, {"b", 15, 1}}), 4U);
  // A second prompt continues from the middle of the picture.
  std::vector<std::int64_t> other(tokens.begin(), tokens.begin() + 8);
  other.insert(other.end(), {P, 7, 8, 9});
  apply(stored(9, {other.begin() + 8, other.end()}, {{"a"}}, 2));
  EXPECT_EQ(held(other, {{"a", 2, 7}}), 3U);
}

TEST_F(BareIdentifiers, APictureThatEndsWithABlockDoesNotGoOn) {
  const std::vector<std::int64_t> tokens = {1, P, P, P, 2, 3, P, 4};
  apply(stored(1, tokens, {{"a"}, {"b"}}));
  EXPECT_EQ(held(tokens, {{"a", 1, 3}, {"b", 6, 1}}), 2U);
}

TEST_F(BareIdentifiers, MissingStringMakesThisAndLaterBlocksUncertain) {
  const std::vector<std::int64_t> tokens = {1, 2, P, P, 3, P, 4, P, 5, 6, 7, 8};
  apply(stored(1, tokens, {{"a"}, {"b"}, {}}));
  EXPECT_EQ(held(tokens, {{"a", 2, 2}, {"b", 5, 1}}), 1U);
  EXPECT_EQ(held(tokens, {{"a", 2, 2}, {"b", 7, 1}}), 1U);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(state.statistics().unknown_content, 2U);
  EXPECT_TRUE(state.missing().unknown_content);
}

TEST_F(BareIdentifiers, APlaceholderTypedByAUserIsNoPicture) {
  apply(stored(1, {1, P, 2, 3}, {{}}));
  apply(stored(11, {1, 2, 3, 4, 1, P, 2, 3}, {{"tenant"}, {}}));
  EXPECT_EQ(held({1, 2, 3, 4}, {}, "tenant"), 1U);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(BareIdentifiers, StringsWithoutARunAreNotCertain) {
  apply(stored(1, {1, 2, 3, 4, 5, 6, 7, 8}, {{}, {"a"}}));
  apply(stored(11, {2, P, 3, 4}, {{"a", "b", "tenant"}}));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(BareIdentifiers, AdjacentPicturesAreUncertain) {
  apply(stored(1, {1, 2, 3, 4, P, P, P, P}, {{}, {"a", "b"}}));
  EXPECT_EQ(blocks(), 1U);
  // In the first block they look like a picture and a salt, until the second block follows.
  apply(stored(11, {1, P, P, P, P, P, 2, 3}, {{"a", "b"}, {"b"}}));
  // The same picture twice.
  apply(stored(21, {2, P, P, 3}, {{"a", "a"}}));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(BareIdentifiers, IdentifiersInAnotherOrderMakeTheStoreUnknown) {
  apply(stored(1, {1, P, 2, P, P, 3, 4, 5}, {{"b", "a"}, {"b"}}));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state.statistics().unknown_content, 2U);
}

TEST_F(BareIdentifiers, RunWithAnotherNameInALaterStoreIsUncertain) {
  apply(stored(1, {1, 2, P, P}, {{"a"}}));
  apply(stored(2, {P, P, 3, 4}, {{"b"}}, 1));
  EXPECT_EQ(blocks(), 1U);
}

// vLLM lists an item once more in a block that begins where it ended, if a store begins there.
TEST_F(BareIdentifiers, EndedItemDoesNotCountInALaterStore) {
  apply(stored(1, {1, 2, P, P}, {{"a"}}));
  apply(stored(2, {3, P, 4, 5}, {{"a"}}, 1));  // the client typed the run, or "a" is there again
  EXPECT_EQ(blocks(), 1U);
  apply(stored(3, {3, P, 4, 6}, {{"b"}}, 1));
  EXPECT_EQ(held({1, 2, P, P, 3, P, 4, 6}, {{"a", 2, 2}, {"b", 5, 1}}), 2U);
}

TEST_F(BareIdentifiers, MediaThatAreNotOneRunAreNotCertain) {
  apply(stored(1, {1, 2, 3, 4, 5, V, V, 6}, {{}, {"v"}}));
  apply(stored(11, {1, P, V, 6}, {{"a", "v"}}));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(BareIdentifiers, TheAdaptersNameComesFirst) {
  const std::vector<std::int64_t> tokens = {1, P, 2, 3};
  auto event = stored(1, tokens, {{"a", "tenant"}});
  event.lora_name = "ad";
  event.extras[0].names_lora = true;
  apply(event);
  EXPECT_EQ(held(tokens, {{"a", 1, 1}}, "tenant", "ad"), 1U);
  auto unnamed = stored(2, {2, P, 2, 3}, {{"a"}});
  unnamed.lora_name = "ad";
  apply(unnamed);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(BareIdentifiers, NamesWithoutOffsetsDoNotCountAfterOffsets) {
  auto pair = stored(1, {1, 2, P, P}, {{}});
  pair.extras[0].media.push_back({.id = keys::identifier_hash("a"), .offset = 2});
  pair.offsets_stated = true;
  apply(pair);
  apply(stored(2, {P, P, 3, 4}, {{"a"}}, 1));
  apply(stored(11, {2, P, 3, 4}, {{"tenant"}}));
  EXPECT_EQ(blocks(), 1U);
  // After a restart the engine may have another version.
  state.reset();
  apply(stored(11, {2, P, 3, 4}, {{"b"}}));
  EXPECT_EQ(held({2, P, 3, 4}, {{"b", 1, 1}}), 1U);
}

TEST_F(BareIdentifiers, WhatABlockEndsWithIsForgottenWithIt) {
  apply(stored(1, {1, 2, P, P}, {{"a"}}));
  BlockRemoved removed;
  removed.hashes = {hash(1)};
  apply(removed);
  // The same hash for other content: the engine lies.
  apply(stored(1, {1, 2, 3, 4}, {{}}));
  apply(stored(2, {P, P, 3, 4}, {{"a"}}, 1));
  EXPECT_EQ(held({1, 2, 3, 4, P, P, 3, 4}, {{"a", 4, 2}}), 2U);
}

// A prompt in both forms of vLLM.
struct Announced {
  std::vector<std::int64_t> tokens;
  std::vector<Picture> pictures;
  std::optional<std::string> salt;
};

// Pictures and typed placeholders, each with a token before the next. Beside a salt, a typed
// placeholder could mean a picture with the salt's name, so there is at most one.
Announced random_prompt(Rng& rng) {
  Announced out;
  const bool may_type = rng.below(2) == 0;
  if (!may_type && rng.below(2) == 0) out.salt = "tenant";
  while (out.tokens.size() < 48) {
    for (auto words = 1 + rng.below(6); words > 0; --words) {
      out.tokens.push_back(static_cast<std::int64_t>(1 + rng.below(3)));
    }
    const auto length = static_cast<std::int64_t>(1 + rng.below(14));
    if (may_type && rng.below(4) == 0) {
      out.tokens.push_back(P);
      continue;
    }
    const auto name = std::string(1, static_cast<char>('a' + rng.below(3)));
    out.pictures.push_back({name, static_cast<std::int64_t>(out.tokens.size()), length});
    out.tokens.insert(out.tokens.end(), static_cast<std::size_t>(length), P);
  }
  out.tokens.resize(out.tokens.size() / kBlockSize * kBlockSize);
  return out;
}

// Blocks [from, to) as one store. bare: only identifiers, including those of vLLM 0.17 for the
// first block.
BlockStored store_of(const Announced& prompt, std::size_t from, std::size_t to, bool bare) {
  BlockStored event;
  if (from > 0) event.parent = hash(from - 1);
  event.block_size = kBlockSize;
  event.offsets_stated = !bare;
  for (std::size_t i = from; i < to; ++i) {
    const auto start = static_cast<std::int64_t>(i * kBlockSize);
    const auto end = start + std::int64_t{kBlockSize};
    BlockExtra extra;
    for (const auto& picture : prompt.pictures) {
      const auto behind = picture.start + picture.length;
      const bool overlaps = picture.start < end && behind > start;
      if (bare && (overlaps || (behind == start && i == from))) {
        extra.strings.push_back(picture.identifier);
      }
      if (bare || !overlaps) continue;
      extra.media.push_back({keys::identifier_hash(picture.identifier), picture.start - start});
    }
    if (i == 0 && prompt.salt) extra.strings.push_back(*prompt.salt);
    event.hashes.push_back(hash(i));
    event.extras.push_back(std::move(extra));
    const auto first = prompt.tokens.begin() + start;
    event.tokens.insert(event.tokens.end(), first, first + kBlockSize);
  }
  return event;
}

TEST_F(BareIdentifiers, NoKeyDiffersFromWhatOffsetsWouldGive) {
  std::size_t as_many = 0;
  constexpr std::size_t kPrompts = 2000;
  for (std::uint64_t seed = 0; seed < kPrompts; ++seed) {
    Rng rng(seed);
    const auto prompt = random_prompt(rng);
    const auto count = prompt.tokens.size() / kBlockSize;
    index::ExactIndex told_index;
    index::ExactIndex bare_index;
    test::IndexedNormaliser told(options, scheme, told_index);
    test::IndexedNormaliser bare(options, scheme, bare_index);
    for (std::size_t from = 0; from < count;) {
      const auto to = std::min(count, from + 1 + rng.below(5));
      told.apply({.timestamp_s = 1, .events = {store_of(prompt, from, to, false)}});
      bare.apply({.timestamp_s = 1, .events = {store_of(prompt, from, to, true)}});
      from = to;
    }
    const auto all = told_index.held(kEngine, Tier::Gpu);
    const auto some = bare_index.held(kEngine, Tier::Gpu);
    const std::set<keys::BlockKey> wanted(all.begin(), all.end());
    for (const auto key : some) ASSERT_TRUE(wanted.contains(key)) << "seed " << seed;
    if (some.size() == all.size()) ++as_many;
  }
  // It is not only equal because it claims no blocks.
  EXPECT_GT(as_many, kPrompts / 2);
}

}  // namespace
}  // namespace sightline::events
