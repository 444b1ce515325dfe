// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/normaliser.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

namespace sightline::events {
namespace {

using operations::Tier;

constexpr CacheId kEngine{6};
constexpr std::uint32_t kBlockSize = 4;
constexpr TokenId kPad = 900;  // the model's image placeholder

EngineHash hash(std::uint64_t value) { return {.low = value, .high = 1}; }

std::vector<EngineHash> hashes(std::uint64_t from, std::size_t count) {
  std::vector<EngineHash> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(hash(from + i));
  return list;
}

std::vector<std::int64_t> counting(std::size_t count, std::int64_t from = 10) {
  std::vector<std::int64_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

// Blocks of consecutive tokens with consecutive hashes, by default at the root.
BlockStored stored(std::uint64_t first_hash, std::size_t blocks,
                   std::optional<std::uint64_t> parent = std::nullopt) {
  BlockStored event;
  event.hashes = hashes(first_hash, blocks);
  if (parent) event.parent = hash(*parent);
  event.tokens = counting(blocks * kBlockSize, static_cast<std::int64_t>(first_hash) * 10);
  event.block_size = kBlockSize;
  event.offsets_stated = true;
  event.kind = SpecKind::Full;
  event.group = 0;
  return event;
}

BlockRemoved removed(std::uint64_t first_hash, std::size_t blocks = 1) {
  BlockRemoved event;
  event.hashes = hashes(first_hash, blocks);
  event.group = 0;
  return event;
}

class NormaliserRules : public testing::Test {
 protected:
  NormaliserOptions options{.id = kEngine, .model = "m", .media_tokens = {kPad}};

  Normaliser& state() {
    if (!state_) state_.emplace(options, scheme, index);
    return *state_;
  }
  template <class... Events>
  void apply(Events... events) {
    state().apply({.timestamp_s = 1, .rank = 0, .events = {KvEvent(std::move(events))...}});
  }
  const NormaliserStatistics& counts() { return state().statistics(); }

  [[nodiscard]] keys::BlockKey root(const std::optional<std::string>& salt = std::nullopt,
                                    const std::optional<std::string>& lora = std::nullopt) const {
    return scheme.root({.model = "m", .cache_salt = salt, .lora = lora});
  }
  // Leading blocks of these tokens that the index holds.
  [[nodiscard]] std::uint32_t leading(const std::vector<std::int64_t>& tokens,
                                      const std::vector<keys::MediaSpan>& media,
                                      keys::BlockKey from) const {
    const std::vector<TokenId> ids(tokens.begin(), tokens.end());
    const auto sequence =
        keys::block_keys(scheme, from, {.tokens = ids, .media = media, .block_size = kBlockSize});
    return index.match(sequence.keys).of(kEngine).gpu_blocks;
  }
  [[nodiscard]] std::uint32_t leading(const BlockStored& event) const {
    return leading(event.tokens, {}, root());
  }
  [[nodiscard]] std::uint64_t blocks(Tier tier = Tier::Gpu) const {
    return index.held(kEngine, tier).size();
  }

  keys::Scheme scheme{contract::development_identity_key()};
  index::ExactIndex index;

 private:
  std::optional<test::IndexedNormaliser> state_;
};

TEST_F(NormaliserRules, ChainAcrossEventsEqualsTheWholePrompt) {
  const auto first = stored(1, 2);
  auto second = stored(3, 2, 2);
  apply(first);
  apply(second);
  auto tokens = first.tokens;
  tokens.insert(tokens.end(), second.tokens.begin(), second.tokens.end());
  EXPECT_EQ(leading(tokens, {}, root()), 4U);
  EXPECT_EQ(blocks(), 4U);
  EXPECT_EQ(state().block_size(), kBlockSize);
  EXPECT_EQ(counts().blocks_stored, 4U);
}

TEST_F(NormaliserRules, EngineHashesOnlyMeanSomethingWithinTheEngine) {
  test::IndexedNormaliser other({.id = {7}, .model = "m"}, scheme, index);
  apply(stored(1, 2));
  other.apply({.events = {stored(3, 1, 2)}});
  EXPECT_EQ(other.waiting(), 1U);
  EXPECT_EQ(index.blocks({7}), 0U);
}

TEST_F(NormaliserRules, AnUnknownParentIsNeverGuessed) {
  apply(stored(3, 2, 2));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state().waiting(), 2U);
  apply(stored(5, 1, 4));  // child of a block that waits
  EXPECT_EQ(state().waiting(), 3U);
  EXPECT_EQ(state().handles(), 0U);
}

TEST_F(NormaliserRules, EveryCopyNeedsItsRemoval) {
  apply(stored(1, 2));
  const auto last = [] {
    auto event = stored(2, 1, 1);
    event.tokens = counting(kBlockSize, 14);
    return event;
  };
  apply(last());
  apply(last());
  EXPECT_EQ(counts().copies_added, 2U);
  apply(removed(2), removed(2));
  EXPECT_EQ(blocks(), 2U);
  apply(removed(2));
  EXPECT_EQ(blocks(), 1U);
  apply(removed(2));
  EXPECT_EQ(counts().unknown_removal, 1U);
  EXPECT_EQ(state().handles(), 1U);
}

TEST_F(NormaliserRules, LastCopyPolicyRemovesAtOnce) {
  options.copies = contract::Copies::LastCopy;
  apply(stored(1, 1), stored(1, 1), removed(1));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().copies_added, 0U);
}

TEST_F(NormaliserRules, AReportOfReusedBlocksIsNoNewCopy) {
  apply(stored(1, 3));
  apply(stored(1, 3));
  EXPECT_EQ(counts().reports_repeated, 3U);
  apply(removed(3), removed(2), removed(1));
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(NormaliserRules, RemovingAnUnknownBlockChangesNothing) {
  apply(stored(1, 1), removed(9));
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(counts().unknown_removal, 1U);
}

TEST_F(NormaliserRules, AllBlocksClearedForgetsEverythingAndAHandleToo) {
  apply(stored(1, 2), AllBlocksCleared{}, stored(3, 1, 2));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().cleared, 1U);
  EXPECT_EQ(state().waiting(), 1U);
}

TEST_F(NormaliserRules, ClearBeforeStoresOfItsBatchKeepsThem) {
  apply(stored(1, 2));
  apply(AllBlocksCleared{}, stored(7, 1));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(NormaliserRules, MediaEnterTheKeysAsInRequests) {
  auto event = stored(1, 3);
  // Text, then an item over the end of block 0, all of block 1 and the start of block 2.
  event.tokens = {1, 2, kPad, kPad, kPad, kPad, kPad, kPad, kPad, 3, 4, 5};
  const auto id = keys::identifier_hash("cat");
  event.extras.resize(3);
  event.extras[0].media = {{id, 2}};
  event.extras[1].media = {{id, -2}};
  event.extras[2].media = {{id, -6}};
  apply(event);
  EXPECT_EQ(leading(event.tokens, {{id, 2, 7}}, root()), 3U);
  EXPECT_EQ(leading(event.tokens, {{keys::identifier_hash("dog"), 2, 7}}, root()), 0U);
  EXPECT_EQ(leading(event.tokens, {}, root()), 0U);
}

TEST_F(NormaliserRules, SaltAndAdapterChooseTheRoot) {
  auto salted = stored(1, 1);
  salted.extras.resize(1);
  salted.extras[0].strings = {"tenant"};
  auto adapted = stored(2, 1);
  adapted.lora_name = "ad";
  apply(salted, adapted);
  EXPECT_EQ(leading(salted.tokens, {}, root("tenant")), 1U);
  EXPECT_EQ(leading(salted.tokens, {}, root()), 0U);
  EXPECT_EQ(leading(adapted.tokens, {}, root(std::nullopt, "ad")), 1U);
  EXPECT_EQ(leading(adapted.tokens, {}, root()), 0U);
}

// SGLang gives the salt of the whole event. Its blocks' hashes include it, so children inherit it.
TEST_F(NormaliserRules, TheSaltOfAnEventChoosesTheRoot) {
  auto salted = stored(1, 2);
  salted.cache_salt = "tenant";
  auto child = stored(3, 1, 2);
  child.cache_salt = "tenant";
  apply(salted, child);
  auto tokens = salted.tokens;
  tokens.insert(tokens.end(), child.tokens.begin(), child.tokens.end());
  EXPECT_EQ(leading(tokens, {}, root("tenant")), 3U);
  EXPECT_EQ(leading(tokens, {}, root()), 0U);
}

struct UnclearCase {
  const char* name;
  std::function<void(BlockStored&)> change;
};

// Each case makes block 1 of three, or the root, unclear. Blocks from there on must not be indexed.
TEST_F(NormaliserRules, UnclearBlocksAndTheirChildrenAreNeverIndexed) {
  const auto bare = [](std::size_t block) {
    return [block](BlockStored& event) {
      event.extras.resize(3);
      event.extras[block].strings = {"img-1"};
    };
  };
  const std::vector<std::pair<UnclearCase, std::uint32_t>> cases = {
      {{"placeholder without extra keys", [](auto& e) { e.tokens[5] = kPad; }}, 1},
      {{"placeholder without an item",
        [](auto& e) {
          e.extras.resize(3);
          e.tokens[5] = kPad;
        }},
       1},
      {{"bare identifier of an old encoding", bare(1)}, 1},
      {{"prompt embeds",
        [](auto& e) {
          e.extras.resize(3);
          e.extras[1].opaque = true;
        }},
       1},
      {{"offset beyond 32 bits",
        [](auto& e) {
          e.extras.resize(3);
          e.extras[1].media = {{keys::identifier_hash("x"), std::int64_t{1} << 40U}};
        }},
       1},
      {{"sentinel above 32 bits", [](auto& e) { e.tokens[5] = std::int64_t{1} << 61U; }}, 1},
      {{"negative token", [](auto& e) { e.tokens[5] = -1; }}, 1},
      {{"named by something that cannot be read", [](auto& e) { e.unclear = true; }}, 0},
      {{"two salts",
        [](auto& e) {
          e.cache_salt = "a";
          e.extras.resize(3);
          e.extras[0].strings = {"b"};
        }},
       0},
      {{"adapter without a name", [](auto& e) { e.lora_unnamed = true; }}, 0},
      {{"two strings at the root",
        [](auto& e) {
          e.extras.resize(3);
          e.extras[0].strings = {"a", "b"};
        }},
       0},
      {{"string beside a placeholder at the root of an old encoding",
        [](auto& e) {
          e.offsets_stated = false;
          e.tokens[0] = kPad;
          e.extras.resize(3);
          e.extras[0].strings = {"img-1"};
        }},
       0},
  };
  std::uint64_t first = 1;
  for (const auto& [test, want] : cases) {
    SCOPED_TRACE(test.name);
    state().reset();
    const auto before = counts().unknown_content;
    auto event = stored(first, 3);
    test.change(event);
    apply(event);
    EXPECT_EQ(blocks(), want);
    EXPECT_EQ(counts().unknown_content - before, 3 - want);
    apply(stored(first + 3, 1, first + 2));  // a child in a later event
    EXPECT_EQ(blocks(), want);
    EXPECT_EQ(counts().unknown_parent, 0U);
    apply(removed(first, 4));  // the handles are known all the same
    EXPECT_EQ(blocks(), 0U);
    EXPECT_EQ(state().handles(), 0U);
    first += 100;
  }
}

TEST_F(NormaliserRules, RootStringWithoutPlaceholdersIsTheSalt) {
  auto event = stored(1, 1);
  event.offsets_stated = false;
  event.extras.resize(1);
  event.extras[0].strings = {"tenant"};
  apply(event);
  EXPECT_EQ(leading(event.tokens, {}, root("tenant")), 1U);
}

TEST_F(NormaliserRules, TokensAtOrAboveTheVocabularyAreUnclear) {
  options.vocabulary_size = 100;
  auto event = stored(1, 2);
  event.tokens = {1, 2, 3, 99, 1, 2, 3, 100};
  apply(event);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(counts().unknown_content, 1U);
}

TEST_F(NormaliserRules, TokensThatDoNotFitTheHashesAreDropped) {
  auto longer = stored(1, 2);
  longer.tokens.push_back(1);
  auto zero = stored(1, 2);
  zero.block_size = 0;
  auto shorter = stored(1, 2);
  shorter.tokens.pop_back();
  apply(longer, zero, shorter);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().unknown_length, 6U);
  apply(stored(3, 1, 2));
  EXPECT_EQ(state().waiting(), 1U);
}

TEST_F(NormaliserRules, EventsWithoutHashesAreIgnored) {
  auto event = stored(1, 1);
  event.hashes.clear();
  apply(event);
  EXPECT_EQ(counts().unknown_length, 0U);
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(NormaliserRules, TiersAreKeptApart) {
  apply(stored(1, 2));
  auto offloaded = stored(1, 2);
  offloaded.tokens.clear();
  offloaded.block_size = 0;
  offloaded.tier = Tier::Cpu;
  apply(offloaded);
  EXPECT_EQ(blocks(Tier::Cpu), 2U);
  apply(removed(1, 2));
  EXPECT_EQ(blocks(Tier::Gpu), 0U);
  EXPECT_EQ(blocks(Tier::Cpu), 2U);
  apply(stored(3, 1, 2));  // the parent is known as long as any tier holds it
  EXPECT_EQ(counts().unknown_parent, 0U);
  auto gone = removed(1, 2);
  gone.tier = Tier::Cpu;
  apply(gone);
  EXPECT_EQ(blocks(Tier::Cpu), 0U);
  EXPECT_EQ(state().handles(), 1U);
}

TEST_F(NormaliserRules, APlaceholderEventForAnUnknownBlockIsIgnored) {
  apply(stored(1, 1));
  auto offloaded = stored(8, 2);
  offloaded.tokens.clear();
  offloaded.block_size = 0;
  offloaded.tier = Tier::Storage;
  offloaded.group.reset();
  offloaded.kind = SpecKind::Unstated;
  apply(offloaded);
  EXPECT_EQ(blocks(Tier::Storage), 0U);
  EXPECT_EQ(counts().unknown_placeholder, 2U);
}

TEST_F(NormaliserRules, UnknownMediaAndRemoteHoldersAreIgnored) {
  auto unknown = stored(1, 1);
  unknown.tier.reset();
  auto remote = stored(1, 1);
  remote.remote = true;
  auto unknown_removal = removed(1);
  unknown_removal.tier.reset();
  auto remote_removal = removed(1);
  remote_removal.remote = true;
  apply(unknown, remote, stored(1, 1), unknown_removal, remote_removal);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(counts().ignored_medium, 4U);
}

TEST_F(NormaliserRules, OldEncodingsWithoutGroupAndKindCountAsFull) {
  auto event = stored(1, 2);
  event.group.reset();
  event.kind = SpecKind::Unstated;
  auto gone = removed(2);
  gone.group.reset();
  apply(event, gone);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(NormaliserRules, OtherBlockSizeExcludesTheEngineUntilItAgrees) {
  options.block_size_configured = 16;
  apply(stored(1, 2), stored(1, 2));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state().block_size(), kBlockSize);  // the event wins
  EXPECT_EQ(state().block_size_conflict(), kBlockSize);
  EXPECT_EQ(counts().ignored_block_size, 1U);
  state().reset();
  EXPECT_EQ(state().block_size_conflict(), kBlockSize);
  EXPECT_EQ(state().block_size(), 16U);
  auto right = stored(1, 1);
  right.block_size = 16;
  right.tokens = counting(16);
  auto offloaded = right;
  offloaded.tier = Tier::Cpu;
  apply(offloaded);
  EXPECT_EQ(state().block_size_conflict(), kBlockSize);
  apply(right);
  EXPECT_FALSE(state().block_size_conflict().has_value());
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(NormaliserRules, ChangedBlockSizeDropsTheEnginesBlocks) {
  apply(stored(1, 2));
  auto other = stored(5, 1);
  other.block_size = 8;
  other.tokens = counting(8);
  apply(other);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state().block_size_conflict(), 8U);
}

// vLLM's offloading announced blocks of hash size for a group of larger blocks.
TEST_F(NormaliserRules, EventsOfAnotherTierIgnoreTheBlockSize) {
  auto offloaded = stored(1, 1);
  offloaded.tier = Tier::Cpu;
  offloaded.block_size = 1;
  offloaded.tokens = {10};
  apply(offloaded);
  EXPECT_FALSE(state().block_size().has_value());
  apply(stored(1, 2), offloaded);
  EXPECT_EQ(blocks(), 2U);
  EXPECT_EQ(blocks(Tier::Cpu), 0U);
  EXPECT_EQ(state().block_size(), kBlockSize);
  EXPECT_FALSE(state().block_size_conflict().has_value());
  EXPECT_EQ(counts().unknown_length, 2U);
  EXPECT_TRUE(state().missing().unknown_content);
  apply(stored(3, 1, 2));
  EXPECT_EQ(blocks(), 3U);
  auto right = stored(1, 2);
  right.tier = Tier::Cpu;
  apply(right);
  EXPECT_EQ(blocks(Tier::Cpu), 2U);
}

TEST_F(NormaliserRules, OneHashWithTwoContentsIsWithdrawn) {
  auto other = stored(1, 1);
  other.tokens[0] += 1;
  apply(stored(1, 1), other);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().conflicts, 1U);
  apply(stored(2, 1, 1));
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(NormaliserRules, HashWithTwoContentsInOneEventIsWithdrawn) {
  auto event = stored(1, 2);
  event.hashes[1] = event.hashes[0];
  apply(event);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().conflicts, 1U);
}

TEST_F(NormaliserRules, ABrokenRemovalForgetsEverythingABrokenStoreNothing) {
  apply(stored(1, 2), MalformedEvent{.store = true});
  EXPECT_EQ(blocks(), 2U);
  apply(MalformedEvent{.store = false});
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(counts().malformed, 2U);
}

TEST_F(NormaliserRules, UnknownTypesAreCountedAndChangeNothing) {
  apply(stored(1, 1), UnknownEvent{});
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(counts().ignored_type, 1U);
  EXPECT_EQ(counts().events, 2U);
}

TEST_F(NormaliserRules, StoresWithUnknownFieldsAreTakenAndCounted) {
  auto event = stored(1, 2);
  event.unknown_field = true;
  apply(event, stored(3, 1, 2));
  EXPECT_EQ(blocks(), 3U);
  EXPECT_EQ(counts().unknown_field, 1U);
}

TEST_F(NormaliserRules, HandlesAreBounded) {
  options.handles_max = 3;
  apply(stored(1, 5));
  EXPECT_EQ(state().handles(), 3U);
  EXPECT_EQ(blocks(), 3U);
  EXPECT_EQ(counts().handles_refused, 2U);
}

// An engine's block pool: copies of chains of one-token blocks, in any order of stores and
// evictions. The truth is the set of prompts' prefixes with a live copy.
class Pool {
 public:
  explicit Pool(std::uint64_t seed) : rng_(seed) {}

  // One scheduler step: a new or extended chain, a second copy of a last block, evictions.
  EventBatch step() {
    EventBatch batch;
    for (std::uint32_t i = rng_.below(4); i > 0 && !live_.empty(); --i)
      batch.events.push_back(evict());
    if (rng_.below(4) != 0 || live_.empty()) batch.events.push_back(store());
    return batch;
  }

  [[nodiscard]] std::set<std::vector<TokenId>> held() const {
    std::set<std::vector<TokenId>> prefixes;
    for (const auto& [prefix, copies] : live_) prefixes.insert(prefix);
    return prefixes;
  }

 private:
  static EngineHash hash_of(const std::vector<TokenId>& prefix) {
    std::uint64_t value = 17;
    for (const auto token : prefix) value = value * 31 + token + 1;
    return hash(value);
  }

  // Stores the blocks that a short prompt lacks. A complete prompt gets a copy of its last block.
  BlockStored store() {
    std::vector<TokenId> prompt(1 + rng_.below(6));
    for (auto& token : prompt) token = rng_.below(3);
    std::size_t hit = 0;
    while (hit + 1 < prompt.size() && live_.contains({prompt.begin(), prompt.begin() + hit + 1})) {
      ++hit;
    }
    BlockStored event;
    event.block_size = 1;
    if (hit > 0) event.parent = hash_of({prompt.begin(), prompt.begin() + hit});
    for (; hit < prompt.size(); ++hit) {
      const std::vector<TokenId> prefix(prompt.begin(), prompt.begin() + hit + 1);
      // An engine stores a block again only as the last one of a prompt.
      if (hit + 1 < prompt.size() && live_.contains(prefix)) break;
      if (!event.hashes.empty() && live_.contains(prefix)) break;
      event.hashes.push_back(hash_of(prefix));
      event.tokens.push_back(prompt[hit]);
      ++live_[prefix];
    }
    return event;
  }

  BlockRemoved evict() {
    auto victim = live_.begin();
    std::advance(victim, rng_.below(static_cast<std::uint32_t>(live_.size())));
    BlockRemoved event;
    event.hashes = {hash_of(victim->first)};
    if (--victim->second == 0) live_.erase(victim);
    return event;
  }

  Rng rng_;
  std::map<std::vector<TokenId>, int> live_;  // prefix -> copies of its last block
};

TEST_F(NormaliserRules, AgreesWithABlockPoolOverRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Pool pool(seed);
    state().reset();
    for (int step = 0; step < 300; ++step) {
      state().apply(pool.step());
      std::vector<keys::BlockKey> want;
      for (const auto& prefix : pool.held()) {
        const auto sequence =
            keys::block_keys(scheme, root(), {.tokens = prefix, .media = {}, .block_size = 1});
        want.push_back(sequence.keys.back());
      }
      std::sort(want.begin(), want.end());
      ASSERT_EQ(index.held(kEngine, Tier::Gpu), want) << "step " << step;
    }
  }
  EXPECT_GT(counts().copies_added, 100U);
  EXPECT_EQ(counts().unknown_parent, 0U);
  EXPECT_EQ(counts().unknown_removal, 0U);
}

}  // namespace
}  // namespace sightline::events
