// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/keys/block_key.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::keys {
namespace {

constexpr std::uint64_t kModulus = (1ULL << 61U) - 1;

const Scheme& scheme() {
  static const Scheme instance{contract::development_identity_key()};
  return instance;
}

std::vector<TokenId> counting(std::size_t count, TokenId from = 1000) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

std::vector<BlockKey> keys_of(const std::vector<TokenId>& tokens,
                              const std::vector<MediaSpan>& media = {},
                              std::uint32_t block_size = 16) {
  return block_keys(scheme(), scheme().root({.model = "m"}),
                    {.tokens = tokens, .media = media, .block_size = block_size})
      .keys;
}

std::size_t shared_blocks(const std::vector<BlockKey>& a, const std::vector<BlockKey>& b) {
  std::size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) && a[shared] == b[shared]) ++shared;
  return shared;
}

// a * b mod 2^61 - 1 by doubling: slow, and independent of the implementation.
std::uint64_t slow_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  for (; b != 0; b >>= 1U) {
    if ((b & 1U) != 0) product = (product + a) % kModulus;
    a = (a + a) % kModulus;
  }
  return product;
}

TEST(BlockKeys, OnlyWholeBlocksHaveKeys) {
  EXPECT_EQ(keys_of(counting(0)).size(), 0U);
  EXPECT_EQ(keys_of(counting(15)).size(), 0U);
  EXPECT_EQ(keys_of(counting(16)).size(), 1U);
  EXPECT_EQ(keys_of(counting(47)).size(), 2U);
  const auto tokens = counting(47);
  const auto sequence = block_keys(scheme(), {}, {.tokens = tokens, .media = {}, .block_size = 16});
  EXPECT_EQ(sequence.block_size, 16U);
  EXPECT_EQ(sequence.prompt_tokens, 47U);
}

TEST(BlockKeys, PromptsShareBlocksBeforeTheirFirstDifference) {
  const auto tokens = counting(160);
  for (const std::size_t changed : {0U, 15U, 16U, 100U, 159U}) {
    auto other = tokens;
    ++other[changed];
    const auto before = keys_of(tokens);
    const auto after = keys_of(other);
    EXPECT_EQ(shared_blocks(before, after), changed / 16);
    for (std::size_t i = changed / 16; i < before.size(); ++i) EXPECT_NE(before[i], after[i]);
  }
}

TEST(BlockKeys, SameTextDifferentImageSharesNoBlockAfterTheImage) {
  const auto tokens = counting(160);
  const MediaSpan cat{.id = identifier_hash("cat"), .start = 40, .length = 50};
  const MediaSpan dog{.id = identifier_hash("dog"), .start = 40, .length = 50};
  EXPECT_EQ(shared_blocks(keys_of(tokens, {cat}), keys_of(tokens, {dog})), 2U);
  EXPECT_EQ(shared_blocks(keys_of(tokens, {cat}), keys_of(tokens)), 2U);
  EXPECT_EQ(shared_blocks(keys_of(tokens, {cat}), keys_of(tokens, {cat})), 10U);
}

TEST(BlockKeys, TheSameImageAtAnotherOffsetDoesNotMatch) {
  const std::vector<TokenId> tokens(64, 7);
  const MediaSpan at20{.id = identifier_hash("cat"), .start = 20, .length = 20};
  const MediaSpan at21{.id = identifier_hash("cat"), .start = 21, .length = 20};
  EXPECT_EQ(shared_blocks(keys_of(tokens, {at20}), keys_of(tokens, {at21})), 1U);
}

TEST(BlockKeys, ImagesInOtherOrderDoNotMatch) {
  const std::vector<TokenId> tokens(64, 7);
  const auto cat = identifier_hash("cat");
  const auto dog = identifier_hash("dog");
  const auto one = keys_of(tokens, {{cat, 16, 8}, {dog, 24, 8}});
  const auto two = keys_of(tokens, {{dog, 16, 8}, {cat, 24, 8}});
  EXPECT_EQ(shared_blocks(one, two), 1U);
}

TEST(BlockKeys, ImageMarksExactlyTheBlocksOfItsRange) {
  const std::vector<TokenId> tokens(80, 7);
  struct Case {
    const char* name;
    std::int64_t start;
    std::int64_t length;
    std::vector<std::pair<std::size_t, std::int32_t>> want_offsets;  // block, offset
  };
  const std::vector<Case> cases = {
      {"inside one block", 3, 5, {{0, 3}}},
      {"ends with its block", 8, 8, {{0, 8}}},
      {"begins with a block", 16, 1, {{1, 0}}},
      {"over three blocks", 30, 20, {{1, 14}, {2, -2}, {3, -18}}},
      {"empty", 20, 0, {}},
      {"behind the whole blocks", 80, 9, {}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const auto id = identifier_hash("cat");
    std::map<std::size_t, std::int32_t> offsets(test.want_offsets.begin(), test.want_offsets.end());
    auto want = scheme().root({.model = "m"});
    const auto keys = keys_of(tokens, {{id, test.start, test.length}});
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::vector<BlockMedia> media;
      if (offsets.contains(i)) media.push_back({id, offsets[i]});
      const std::vector<TokenId> block(16, 7);
      want = scheme().next(want, scheme().local(block, media));
      EXPECT_EQ(keys[i], want) << i;
    }
  }
}

// Each block asks each item: slow, but simple enough to be right.
std::vector<BlockKey> naive_keys(const std::vector<TokenId>& tokens,
                                 const std::vector<MediaSpan>& media, std::uint32_t block_size) {
  std::vector<BlockKey> keys;
  auto key = scheme().root({.model = "m"});
  for (std::size_t end = block_size; end <= tokens.size(); end += block_size) {
    const auto begin = static_cast<std::int64_t>(end - block_size);
    std::vector<BlockMedia> overlapping;
    for (const auto& item : media) {
      bool touches = false;
      for (std::int64_t i = 0; i < item.length; ++i) {
        touches |= item.start + i >= begin && item.start + i < static_cast<std::int64_t>(end);
      }
      if (!touches) continue;
      overlapping.push_back({item.id, static_cast<std::int32_t>(item.start - begin)});
    }
    const std::vector<TokenId> block(tokens.begin() + begin,
                                     tokens.begin() + static_cast<std::int64_t>(end));
    key = scheme().next(key, scheme().local(block, overlapping));
    keys.push_back(key);
  }
  return keys;
}

TEST(BlockKeys, AgreeWithTheNaiveWalkOverRandomPrompts) {
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t block_size = 1 + rng.below(20);
    const auto tokens = counting(rng.below(150));
    std::vector<MediaSpan> media;
    std::int64_t start = -std::int64_t{rng.below(4)};
    for (std::uint32_t i = rng.below(6); i > 0; --i) {
      start += rng.below(30);
      const std::int64_t length = rng.below(40);
      media.push_back({identifier_hash(std::to_string(rng.below(3))), start, length});
      start += length;
    }
    ASSERT_EQ(keys_of(tokens, media, block_size), naive_keys(tokens, media, block_size)) << round;
  }
}

TEST(BlockKeys, ManyItemsInOneBlockAllCount) {
  const std::vector<TokenId> tokens(64, 7);
  std::vector<MediaSpan> media;
  for (std::int64_t i = 0; i < 64; ++i) media.push_back({identifier_hash("cat"), i, 1});
  const auto keys = keys_of(tokens, media, 64);
  EXPECT_EQ(keys, naive_keys(tokens, media, 64));
  media[63].id = identifier_hash("dog");
  EXPECT_NE(keys, keys_of(tokens, media, 64));
}

TEST(BlockKeys, TheChainIsThePolynomialOverTheLocalHashes) {
  // The multiplier is secret. Two steps from known parents show it to the test: next(1, l) -
  // next(0, l) = r.
  const auto zero = scheme().next({0}, {0});
  const auto r = scheme().next({1}, {0}).value;
  EXPECT_EQ(zero.value, 0U);
  Rng rng(7);
  for (int i = 0; i < 1000; ++i) {
    const BlockKey parent{rng.next() % kModulus};
    const LocalHash local{rng.next()};
    const auto want = (slow_multiply(parent.value, r) + local.value % kModulus) % kModulus;
    EXPECT_EQ(scheme().next(parent, local).value, want);
  }
  for (const std::uint64_t edge : {kModulus - 1, kModulus, kModulus + 1, ~std::uint64_t{0}}) {
    const auto want = (slow_multiply(kModulus - 1, r) + edge % kModulus) % kModulus;
    EXPECT_EQ(scheme().next({kModulus - 1}, {edge}).value, want) << edge;
  }
}

TEST(BlockKeys, KeysStayBelowTheModulus) {
  for (const auto key : keys_of(counting(16'000))) EXPECT_LT(key.value, kModulus);
}

TEST(BlockKeys, RunsOfOneTokenKeepTheirLengthApart) {
  const auto keys = keys_of(std::vector<TokenId>(16 * 500, 7));
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size());
}

TEST(BlockKeys, BlockSizesNeverShareKeys) {
  const auto tokens = counting(64);
  const auto small = keys_of(tokens, {}, 16);
  const auto large = keys_of(tokens, {}, 32);
  for (const auto key : large) EXPECT_EQ(std::count(small.begin(), small.end(), key), 0);
}

TEST(Scheme, TokensThatSpellAnImageAreNotAnImage) {
  // The bytes of an image's identity, given as tokens instead.
  const auto id = identifier_hash("cat");
  const std::vector<TokenId> block = {1, 2};
  std::vector<TokenId> spelled = block;
  for (const auto word : {id.low, id.high}) {
    spelled.push_back(static_cast<TokenId>(word));
    spelled.push_back(static_cast<TokenId>(word >> 32U));
  }
  spelled.push_back(3);  // offset
  spelled.push_back(1);  // number of items
  const std::vector<BlockMedia> media = {{id, 3}};
  const auto image = scheme().local(block, media);
  EXPECT_NE(image, scheme().local(spelled));
  spelled.push_back(1);
  EXPECT_NE(image, scheme().local(spelled));
}

TEST(Scheme, EveryPartOfTheScopeSeparates) {
  using Text = std::optional<std::string>;
  const std::vector<std::tuple<std::string, Text, Text>> scopes = {
      {"m", {}, {}},   {"n", {}, {}},   {"", {}, {}},    {"m", "", {}},     {"m", {}, ""},
      {"m", "a", {}},  {"m", {}, "a"},  {"m", "a", "a"}, {"ma", {}, {}},    {"m", "a", "b"},
      {"m", "b", "a"}, {"m", "ab", ""}, {"m", "", "ab"}, {"m", "ab", "cd"}, {"m", "abc", "d"},
  };
  std::set<BlockKey> roots;
  for (const auto& [model, salt, lora] : scopes) {
    roots.insert(scheme().root({.model = model, .cache_salt = salt, .lora = lora}));
  }
  EXPECT_EQ(roots.size(), scopes.size());
}

TEST(Scheme, AnotherKeyOfTheDeploymentChangesEverything) {
  auto other_key = contract::development_identity_key();
  other_key.bytes[31] ^= 1U;
  const Scheme other{other_key};
  const auto block = counting(16);
  const std::vector<BlockMedia> media = {{identifier_hash("cat"), 0}};
  EXPECT_NE(other.local(block), scheme().local(block));
  EXPECT_NE(other.local(block, media), scheme().local(block, media));
  EXPECT_NE(other.root({.model = "m"}), scheme().root({.model = "m"}));
  EXPECT_NE(other.next({1}, {0}), scheme().next({1}, {0}));
  EXPECT_NE(other.digest({1}), scheme().digest({1}));
}

// Replicas exchange the identity, and it must survive restarts: these values never change.
TEST(Scheme, IdentityUnderTheDevelopmentKeyIsFixed) {
  const auto block = counting(16);
  const std::vector<BlockMedia> media = {{identifier_hash("cat"), -3}};
  EXPECT_EQ(identifier_hash("cat").low, 0x42548a8a111c54eeULL);
  EXPECT_EQ(identifier_hash("cat").high, 0x0381fd7cec51321dULL);
  EXPECT_EQ(scheme().local(block).value, 0x03fa0513a058c8ffULL);
  EXPECT_EQ(scheme().local(block, media).value, 0x03da1727dc1e14b5ULL);
  EXPECT_EQ(scheme().root({.model = "m", .cache_salt = "s", .lora = "l"}).value,
            0x16b5521be10f3190ULL);
  EXPECT_EQ(scheme().next({1}, {0}).value, 0x0f702d88b7dd3553ULL);
  EXPECT_EQ(scheme().digest({1}), "867a88e3ce875ddf");
}

TEST(Scheme, DigestIsSixteenHexDigitsAndNotTheKey) {
  const auto digest = scheme().digest({0x0123456789abcdefULL});
  EXPECT_EQ(digest.size(), 16U);
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(digest.find("0123456789abcdef"), std::string::npos);
  EXPECT_NE(digest, scheme().digest({0x0123456789abceefULL}));
}

TEST(UsableOverlap, LeavesTheLastTokenToTheEngine) {
  struct Case {
    std::uint64_t held;
    std::uint64_t tokens;
    std::uint64_t want;
  };
  for (const auto& test : {Case{0, 100, 0}, Case{3, 100, 3}, Case{9, 96, 2}, Case{9, 97, 3},
                           Case{9, 32, 0}, Case{9, 33, 1}, Case{9, 1, 0}, Case{9, 0, 0}}) {
    EXPECT_EQ(usable_overlap(test.held, test.tokens, 32), test.want) << test.tokens;
  }
}

}  // namespace
}  // namespace sightline::keys
