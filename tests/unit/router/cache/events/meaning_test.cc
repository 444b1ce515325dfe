// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// The meaning of events, as a list of operations.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/contract/identity_key.h"

#include "router/cache/events/normaliser.h"
#include "router/engine/vllm/vllm.h"

namespace sightline::events {
namespace {

using keys::BlockKey;
using operations::Clear;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;

constexpr std::uint32_t kBlockSize = 4;

class OperationList : public operations::OperationSink {
 public:
  void take(const operations::CacheName& cache, const Operation& operation) override {
    all.push_back(operation);
    epochs.push_back(cache.epoch);
    EXPECT_EQ(cache.worker, "w");
    EXPECT_EQ(cache.rank, 2U);
  }
  std::vector<Operation> all;
  std::vector<std::uint64_t> epochs;
};

EngineHash hash(std::uint64_t number) { return {.low = number, .high = 1}; }

// Blocks number first to first + count - 1 of one conversation: block n holds n four times.
BlockStored stored(std::uint64_t first, std::uint64_t count) {
  BlockStored event;
  for (std::uint64_t n = first; n < first + count; ++n) {
    event.hashes.push_back(hash(n));
    event.tokens.insert(event.tokens.end(), kBlockSize, static_cast<std::int64_t>(n));
  }
  if (first > 0) event.parent = hash(first - 1);
  event.block_size = kBlockSize;
  event.offsets_stated = true;
  return event;
}

BlockRemoved removed(std::vector<std::uint64_t> numbers) {
  BlockRemoved event;
  for (const auto number : numbers) event.hashes.push_back(hash(number));
  return event;
}

class Meaning : public testing::Test {
 protected:
  Meaning() {
    NormaliserOptions options;
    options.cache = {.worker = "w", .rank = 2, .epoch = 7};
    options.format = &vllm::vllm();
    options.model = "m";
    normaliser.emplace(std::move(options), scheme, list);
    std::vector<TokenId> tokens;
    for (TokenId n = 0; n < 12; ++n) tokens.insert(tokens.end(), kBlockSize, n);
    key = keys::block_keys(scheme, scheme.root({.model = "m"}),
                           {.tokens = tokens, .media = {}, .block_size = kBlockSize})
              .keys;
  }
  // The operations of these events of one batch.
  template <class... Events>
  std::vector<Operation> of(Events... events) {
    list.all.clear();
    list.epochs.clear();
    normaliser->apply({.timestamp_s = 1, .rank = 2, .events = {KvEvent(std::move(events))...}});
    return list.all;
  }
  [[nodiscard]] std::vector<BlockKey> keys_of(std::size_t first, std::size_t count) const {
    return {key.begin() + static_cast<std::ptrdiff_t>(first),
            key.begin() + static_cast<std::ptrdiff_t>(first + count)};
  }
  using Operations = std::vector<Operation>;

  keys::Scheme scheme{contract::development_identity_key()};
  OperationList list;
  std::optional<Normaliser> normaliser;
  std::vector<BlockKey> key;
};

TEST_F(Meaning, OfAPromptsFirstBlocksIsAStoreWithoutAParent) {
  EXPECT_EQ(of(stored(0, 3)), (Operations{Store{.parent = {}, .keys = keys_of(0, 3)}}));
}

TEST_F(Meaning, OfWhatFollowsIsAStoreBehindItsParent) {
  of(stored(0, 3));
  EXPECT_EQ(of(stored(3, 2)), (Operations{Store{.parent = key[2], .keys = keys_of(3, 2)}}));
}

TEST_F(Meaning, OfBlocksHeldAlreadyIsNothing) {
  of(stored(0, 3));
  EXPECT_EQ(of(stored(0, 3)), Operations{});
  EXPECT_EQ(of(stored(2, 1)), Operations{});
}

TEST_F(Meaning, EachStretchOfNewBlocksGivesOneStore) {
  of(stored(0, 5));
  of(removed({0}), removed({3}), removed({4}));
  EXPECT_EQ(of(stored(0, 5)), (Operations{Store{.parent = {}, .keys = keys_of(0, 1)},
                                          Store{.parent = key[2], .keys = keys_of(3, 2)}}));
}

TEST_F(Meaning, OfARemovalIsARemoveOfWhatWasHeld) {
  of(stored(0, 3));
  EXPECT_EQ(of(removed({2, 1, 9})), (Operations{Remove{.keys = {key[2], key[1]}}}));
  EXPECT_EQ(of(removed({2})), Operations{});
}

TEST_F(Meaning, FirstRemovalOfTwoCopiesGivesNoOperation) {
  of(stored(0, 2));
  of(stored(1, 1));
  EXPECT_EQ(of(removed({1})), Operations{});
  EXPECT_EQ(of(removed({1})), (Operations{Remove{.keys = {key[1]}}}));
}

TEST_F(Meaning, OfABlockThatWaitedForItsParentComesAfterIt) {
  EXPECT_EQ(of(stored(3, 1)), Operations{});
  EXPECT_EQ(of(stored(0, 3)), (Operations{Store{.parent = {}, .keys = keys_of(0, 3)},
                                          Store{.parent = key[2], .keys = keys_of(3, 1)}}));
}

TEST_F(Meaning, AnotherTierGivesAStoreWithTheSameParent) {
  of(stored(0, 3));
  BlockStored offloaded;
  offloaded.hashes = {hash(1), hash(2), hash(0)};
  offloaded.tier = Tier::Cpu;
  EXPECT_EQ(of(offloaded),
            (Operations{Store{.tier = Tier::Cpu, .parent = key[0], .keys = keys_of(1, 2)},
                        Store{.tier = Tier::Cpu, .parent = {}, .keys = keys_of(0, 1)}}));
  auto gone = removed({1});
  EXPECT_EQ(of(gone), (Operations{Remove{.tier = Tier::Gpu, .keys = {key[1]}}}));
  gone.tier = Tier::Cpu;
  EXPECT_EQ(of(gone), (Operations{Remove{.tier = Tier::Cpu, .keys = {key[1]}}}));
}

TEST_F(Meaning, OfUnknownContentIsNothingNorOfWhatFollowsIt) {
  auto unclear = stored(1, 1);
  unclear.unclear = true;
  EXPECT_EQ(of(stored(0, 1), unclear, stored(2, 2)),
            (Operations{Store{.parent = {}, .keys = keys_of(0, 1)}}));
}

TEST_F(Meaning, HashWithTwoContentsRemovesTheFirst) {
  of(stored(0, 2));
  auto other = stored(1, 1);
  other.tokens = {9, 9, 9, 9};
  EXPECT_EQ(of(other), (Operations{Remove{.keys = {key[1]}}}));
}

TEST_F(Meaning, OfAnEmptiedCacheIsAClearInTheSameEpoch) {
  of(stored(0, 1));
  EXPECT_EQ(of(AllBlocksCleared{}), (Operations{Clear{.held = keys_of(0, 1)}}));
  of(stored(0, 1));
  EXPECT_EQ(list.epochs, std::vector<std::uint64_t>{7});
}

TEST_F(Meaning, OfABrokenRemovalIsAClearThatEndsTheEpoch) {
  of(stored(0, 1));
  EXPECT_EQ(of(MalformedEvent{.store = false, .reason = ""}, stored(0, 1)),
            (Operations{Clear{.held = keys_of(0, 1)}, Store{.parent = {}, .keys = keys_of(0, 1)}}));
  EXPECT_EQ(list.epochs, (std::vector<std::uint64_t>{7, 8}));
}

TEST_F(Meaning, OfALossIsAClearThatEndsTheEpoch) {
  of(stored(0, 1));
  list.all.clear();
  normaliser->reset();
  EXPECT_EQ(list.all, (Operations{Clear{.held = keys_of(0, 1)}}));
  EXPECT_EQ(list.epochs.back(), 7U);
  of(stored(0, 1));
  EXPECT_EQ(list.epochs.back(), 8U);
}

TEST_F(Meaning, OfAnotherBlockSizeIsAClearAndNothingMore) {
  of(stored(0, 1));
  auto other = stored(1, 1);
  other.block_size = 2;
  other.tokens.resize(2);
  EXPECT_EQ(of(other, stored(0, 1)), (Operations{Clear{.held = keys_of(0, 1)}}));
  EXPECT_EQ(normaliser->block_size_conflict(), 2U);
}

TEST_F(Meaning, OfASaltIsAnotherPrompt) {
  auto salted = stored(0, 1);
  salted.cache_salt = "pepper";
  const auto operations = of(salted);
  ASSERT_EQ(operations.size(), 1U);
  EXPECT_NE(std::get<Store>(operations[0]).keys, keys_of(0, 1));
  EXPECT_EQ(std::get<Store>(operations[0]).parent, std::nullopt);
}

}  // namespace
}  // namespace sightline::events
