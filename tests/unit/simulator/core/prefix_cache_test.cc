// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/prefix_cache.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::core {
namespace {

std::vector<TokenId> numbers(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Computes a whole prompt and then releases its blocks. Returns the number of cached tokens.
std::size_t serve(PrefixCache& cache, const std::vector<TokenId>& prompt, SequenceKeys keys = {}) {
  Sequence sequence(prompt, std::move(keys));
  const std::size_t cached = cache.match(sequence);
  EXPECT_TRUE(cache.grow(sequence, prompt.size()));
  cache.release(sequence);
  return cached;
}

std::vector<std::string> kinds(const std::vector<KvEvent>& events) {
  std::vector<std::string> out;
  for (const KvEvent& event : events) {
    if (const auto* stored = std::get_if<BlockStored>(&event)) {
      out.push_back("stored " + std::to_string(stored->hashes.size()) +
                    (stored->parent ? " after parent" : " at root"));
    } else {
      out.emplace_back(std::holds_alternative<BlockRemoved>(event) ? "removed" : "cleared");
    }
  }
  return out;
}

using Strings = std::vector<std::string>;

TEST(PrefixCache, CachesAndAnnouncesOnlyWholeBlocks) {
  PrefixCache cache({.block_size = 4, .blocks = 16});
  EXPECT_EQ(serve(cache, numbers(0, 14)), 0U);
  const auto events = cache.take_events();
  ASSERT_EQ(kinds(events), Strings{"stored 3 at root"});
  EXPECT_EQ(std::get<BlockStored>(events[0]).tokens, numbers(0, 12));
  EXPECT_EQ(serve(cache, numbers(0, 14)), 12U);
  EXPECT_TRUE(cache.take_events().empty());
}

TEST(PrefixCache, RecomputesTheLastBlockOfWholePrompt) {
  PrefixCache cache({.block_size = 4, .blocks = 16});
  serve(cache, numbers(0, 8));
  const auto first = cache.take_events();
  EXPECT_EQ(serve(cache, numbers(0, 8)), 4U);
  const auto again = cache.take_events();
  ASSERT_EQ(kinds(again), Strings{"stored 1 after parent"});
  const auto& hashes = std::get<BlockStored>(first[0]).hashes;
  EXPECT_EQ(std::get<BlockStored>(again[0]).hashes[0], hashes[1]);
  EXPECT_EQ(*std::get<BlockStored>(again[0]).parent, hashes[0]);
  const auto cached = cache.cached();
  ASSERT_EQ(cached.size(), 2U);
  EXPECT_EQ(cached[0].copies + cached[1].copies, 3U);
}

TEST(PrefixCache, DecodingAnnouncesBlocksOneByOne) {
  PrefixCache cache({.block_size = 4, .blocks = 16});
  Sequence sequence(numbers(0, 3), {});
  ASSERT_TRUE(cache.grow(sequence, 3));
  EXPECT_TRUE(cache.take_events().empty());
  for (TokenId token = 3; token < 9; ++token) {
    sequence.append(token);
    ASSERT_TRUE(cache.grow(sequence, sequence.tokens().size()));
  }
  EXPECT_EQ(kinds(cache.take_events()), (Strings{"stored 1 at root", "stored 1 after parent"}));
}

TEST(PrefixCache, EvictsTheTailOfTheOldestRequestFirst) {
  // 8 of the 9 blocks are usable.
  PrefixCache cache({.block_size = 4, .blocks = 9});
  // Takes 4 whole blocks and a partial one.
  serve(cache, numbers(0, 17));
  // Takes 2 whole blocks and a partial one. The partial block of the first request goes first.
  serve(cache, numbers(100, 9));
  // Uses the first two blocks of the first request again.
  serve(cache, numbers(0, 9));
  const auto stored = std::get<BlockStored>(cache.take_events()[0]);
  serve(cache, numbers(200, 17));
  const auto events = cache.take_events();
  EXPECT_EQ(kinds(events), (Strings{"removed", "removed", "removed", "stored 4 at root"}));
  EXPECT_EQ(std::get<BlockRemoved>(events[0]).hash, stored.hashes[3]);
  EXPECT_EQ(std::get<BlockRemoved>(events[1]).hash, stored.hashes[2]);
  EXPECT_EQ(serve(cache, numbers(0, 17)), 8U);
}

TEST(PrefixCache, GrowBeyondTheFreeBlocksChangesNothing) {
  PrefixCache cache({.block_size = 4, .blocks = 5});
  serve(cache, numbers(0, 9));
  cache.take_events();
  Sequence holder(numbers(50, 8), {});
  ASSERT_TRUE(cache.grow(holder, 8));
  cache.take_events();
  // Both free blocks would be hits, so the third block gets no free one.
  Sequence sequence(numbers(0, 12), {});
  EXPECT_EQ(cache.match(sequence), 8U);
  EXPECT_FALSE(cache.grow(sequence, 12));
  EXPECT_TRUE(cache.take_events().empty());
  EXPECT_EQ(cache.blocks_free(), 2U);
  EXPECT_FALSE(sequence.holds_blocks());
}

TEST(PrefixCache, ResetWaitsUntilNoBlockIsHeld) {
  PrefixCache cache({.block_size = 4, .blocks = 9});
  Sequence sequence(numbers(0, 8), {});
  ASSERT_TRUE(cache.grow(sequence, 8));
  EXPECT_FALSE(cache.reset());
  cache.release(sequence);
  cache.take_events();
  EXPECT_TRUE(cache.reset());
  EXPECT_EQ(serve(cache, numbers(0, 8)), 0U);
  EXPECT_EQ(kinds(cache.take_events()), (Strings{"cleared", "stored 2 at root"}));
}

TEST(PrefixCache, ReportModeAnnouncesReusedBlocksWithoutCopies) {
  PrefixCache cache({.block_size = 4, .blocks = 9});
  serve(cache, numbers(0, 9));
  cache.take_events();
  Sequence sequence(numbers(0, 9), {});
  ASSERT_TRUE(cache.grow(sequence, 9, true));
  EXPECT_EQ(kinds(cache.take_events()), Strings{"stored 2 at root"});
  for (const auto& cached : cache.cached()) EXPECT_EQ(cached.copies, 1U);
}

TEST(PrefixCache, OtherExtraKeysShareNoBlocks) {
  const SequenceKeys base{.media = {{"a", 2, 4}}};
  const std::vector<SequenceKeys> others = {
      {.media = {{"b", 2, 4}}},
      {.media = {{"a", 1, 4}}},
      {.media = {{"a", 2, 4}}, .cache_salt = "s"},
      {.lora = Lora{"ad"}, .media = {{"a", 2, 4}}},
      {},
  };
  for (const SequenceKeys& other : others) {
    PrefixCache cache({.block_size = 4, .blocks = 64});
    serve(cache, numbers(0, 13), base);
    EXPECT_EQ(serve(cache, numbers(0, 13), other), 0U);
    EXPECT_EQ(serve(cache, numbers(0, 13), base), 12U);
  }
}

TEST(PrefixCache, SaltMarksOnlyTheFirstBlock) {
  const SequenceKeys keys{
      .lora = Lora{"ad"}, .media = {{"a", 2, 4}, {"b", 7, 1}}, .cache_salt = "s"};
  EXPECT_EQ(extra_keys_of(keys, 0, 4), (ExtraKeys{"ad", {{"a", 2}}, "s"}));
  EXPECT_EQ(extra_keys_of(keys, 4, 4), (ExtraKeys{"ad", {{"a", -2}, {"b", 3}}, {}}));
  EXPECT_EQ(extra_keys_of(keys, 8, 4), (ExtraKeys{"ad", {}, {}}));
}

// Models the same pool in the plainest way. It searches lists and compares whole prefixes instead
// of hashes.
class NaivePool {
 public:
  NaivePool(std::size_t block_size, std::size_t blocks) : size_(block_size) {
    for (std::size_t i = 1; i < blocks; ++i) free_.push_back(Block{});
  }

  using Prefix = std::vector<TokenId>;
  struct Block {
    // Empty if the block has no content.
    Prefix prefix;
    std::uint64_t age = 0;
    int users = 0;
  };

  std::size_t hit_blocks(const Prefix& tokens) const {
    std::size_t hits = 0;
    while ((hits + 1) * size_ < tokens.size() && find(prefix_of(tokens, hits + 1)) != free_.end()) {
      ++hits;
    }
    return hits;
  }

  // Serves one request alone. Every block is free before it and after it.
  Strings serve(const Prefix& tokens) {
    Strings log;
    const std::size_t hits = hit_blocks(tokens);
    std::vector<Block> held;
    for (std::size_t i = 0; i < hits; ++i) take(find(prefix_of(tokens, i + 1)), held);
    const std::size_t wanted = (tokens.size() + size_ - 1) / size_;
    while (held.size() < wanted) {
      if (!free_.front().prefix.empty()) log.push_back("removed " + name(free_.front().prefix));
      take(free_.begin(), held);
      held.back() = Block{{}, ++clock_};
    }
    for (std::size_t i = hits; i < tokens.size() / size_; ++i) {
      held[i].prefix = prefix_of(tokens, i + 1);
      log.push_back("stored " + name(held[i].prefix));
    }
    while (!held.empty()) {
      const bool empty = held.back().prefix.empty();
      free_.insert(empty ? free_.begin() : free_.end(), held.back());
      held.pop_back();
    }
    return log;
  }

  static std::string name(const Prefix& prefix) {
    std::string text;
    for (const TokenId token : prefix) text += std::to_string(token) + ",";
    return text;
  }

 private:
  Prefix prefix_of(const Prefix& tokens, std::size_t blocks) const {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(blocks * size_)};
  }
  // Returns the oldest copy, the one that was filled first.
  std::vector<Block>::const_iterator find(const Prefix& prefix) const {
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      if (block->prefix == prefix && (best == free_.end() || block->age < best->age)) best = block;
    }
    return best;
  }
  void take(std::vector<Block>::const_iterator block, std::vector<Block>& held) {
    held.push_back(*block);
    free_.erase(block);
  }

  const std::size_t size_;
  std::uint64_t clock_ = 0;
  std::vector<Block> free_;
};

// Writes events in the form of NaivePool. It remembers the prefix of each hash.
class Speller {
 public:
  Strings spell(const std::vector<KvEvent>& events, std::uint32_t block_size) {
    Strings out;
    for (const KvEvent& event : events) {
      if (const auto* removed = std::get_if<BlockRemoved>(&event)) {
        out.push_back("removed " + names_.at(removed->hash));
      } else {
        spell(std::get<BlockStored>(event), block_size, out);
      }
    }
    return out;
  }

 private:
  void spell(const BlockStored& stored, std::uint32_t block_size, Strings& out) {
    std::string prefix = stored.parent ? names_.at(*stored.parent) : "";
    for (std::size_t i = 0; i < stored.hashes.size(); ++i) {
      const auto first = stored.tokens.begin() + static_cast<std::ptrdiff_t>(i * block_size);
      prefix += NaivePool::name({first, first + block_size});
      names_[stored.hashes[i]] = prefix;
      out.push_back("stored " + prefix);
    }
  }

  std::map<BlockHash, std::string> names_;
};

TEST(PrefixCache, AgreesWithThePlainPoolOnRandomRequests) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const std::uint32_t block_size = 1 + rng.below(4);
    const std::uint32_t blocks = 12 + rng.below(30);
    PrefixCache cache({.block_size = block_size, .blocks = blocks});
    NaivePool naive(block_size, blocks);
    Speller speller;
    for (int request = 0; request < 200; ++request) {
      std::vector<TokenId> tokens(1 + rng.below(block_size * 10));
      for (TokenId& token : tokens) token = rng.below(2);
      const std::size_t want_cached = naive.hit_blocks(tokens) * block_size;
      const Strings want = naive.serve(tokens);
      ASSERT_EQ(serve(cache, tokens), want_cached) << "seed " << seed;
      ASSERT_EQ(speller.spell(cache.take_events(), block_size), want)
          << "seed " << seed << " request " << request;
    }
  }
}

}  // namespace
}  // namespace sightline::core
