// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// What an engine may say costs no more memory or time than its bytes are worth.
#include <gtest/gtest.h>

#include "common/contract/identity_key.h"

#include "router/events/normaliser.h"
#include "router/events/vllm_codec.h"
#include "router/index/exact_index.h"
#include "tests/support/pack.h"

namespace sightline::events {
namespace {

// An array of so many values of one byte each.
pack::Value many(std::size_t count, char value) {
  return pack::sized(0xdd, static_cast<std::uint32_t>(count)) + std::string(count, value);
}

pack::Value removal(std::size_t blocks) {
  return pack::map({{"type", pack::text("BlockRemoved")}, {"block_hashes", many(blocks, 1)}});
}

pack::Value store(std::size_t blocks, const pack::Value& tokens, const pack::Value& extras) {
  return pack::map({{"type", pack::text("BlockStored")},
                    {"block_hashes", many(blocks, 1)},
                    {"token_ids", tokens},
                    {"block_size", pack::integer(1)},
                    {"extra_keys", extras}});
}

TEST(HostileEngine, TheBlocksOfABatchAreBoundedTogether) {
  constexpr std::size_t kHalf = kBlocksPerBatchMax / 2;
  EXPECT_TRUE(decode_vllm_batch(pack::batch({removal(kHalf), removal(kHalf)})).ok());
  const auto refused = decode_vllm_batch(pack::batch({removal(kHalf), removal(kHalf), removal(1)}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
  EXPECT_EQ(refused.error().blame, Blame::Worker);
}

TEST(HostileEngine, TheTokensOfABatchAreBoundedTogether) {
  const auto full = store(1, many(kTokensPerEventMax, 1), pack::nil());
  EXPECT_TRUE(decode_vllm_batch(pack::batch({full, full})).ok());
  EXPECT_EQ(decode_vllm_batch(pack::batch({full, full, full})).error().code, ErrorCode::TooLarge);
}

TEST(HostileEngine, TheExtraKeysOfABatchAreBoundedTogether) {
  constexpr char kEmptyText = '\xa0';
  constexpr std::size_t kBlocks = kExtrasPerBatchMax / kMediaPerBlockMax;
  std::vector<pack::Value> extras(kBlocks, many(kMediaPerBlockMax, kEmptyText));
  const auto tokens = many(kBlocks, 1);
  EXPECT_TRUE(decode_vllm_batch(pack::batch({store(kBlocks, tokens, pack::array(extras))})).ok());
  extras[0] = many(1, kEmptyText);
  const auto more = pack::batch(
      {store(kBlocks, tokens, pack::array(extras)), store(kBlocks, tokens, pack::array(extras))});
  EXPECT_EQ(decode_vllm_batch(more).error().code, ErrorCode::TooLarge);
}

class CountingIndex : public index::ExactIndex {
 public:
  void drop(EngineId engine) override {
    ++drops;
    ExactIndex::drop(engine);
  }
  int drops = 0;
};

BlockStored blocks_of(std::size_t count) {
  BlockStored event;
  for (std::size_t i = 0; i < count; ++i) event.hashes.push_back({.low = i, .high = 1});
  event.tokens.assign(count, 7);
  event.block_size = 1;
  return event;
}

TEST(HostileEngine, ClearingAgainAndAgainDoesNotWalkOverTheOthersBlocks) {
  const keys::Scheme scheme(contract::development_identity_key());
  CountingIndex index;
  EngineState other({.engine = EngineId{1}, .model = "m"}, scheme, index);
  EngineState state({.engine = EngineId{2}, .model = "m"}, scheme, index);
  other.apply({.events = {blocks_of(1000)}});
  for (int i = 0; i < 100; ++i) {
    state.apply({.events = {blocks_of(10)}});
    EXPECT_EQ(index.blocks(EngineId{2}), 10U);
    state.apply({.events = {AllBlocksCleared{}, AllBlocksCleared{}}});
    EXPECT_EQ(index.blocks(EngineId{2}), 0U);
  }
  EXPECT_EQ(index.drops, 0);
  EXPECT_EQ(index.blocks(EngineId{1}), 1000U);
  EXPECT_EQ(index.blocks_total(), 1000U);
}

}  // namespace
}  // namespace sightline::events
