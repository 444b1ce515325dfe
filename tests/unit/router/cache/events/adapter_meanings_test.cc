// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// A LoRA adapter's name was loaded again from another path. Events contain only the name.
#include <numeric>

#include <gtest/gtest.h>

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

namespace sightline::events {
namespace {

constexpr CacheId kEngine{6};
constexpr std::uint32_t kBlockSize = 4;
constexpr double kReloaded_s = 100;

BlockStored stored(std::uint64_t hash, std::optional<std::uint64_t> parent,
                   std::optional<std::string> lora) {
  BlockStored event;
  event.hashes = {{.low = hash, .high = 1}};
  if (parent) event.parent = EngineHash{.low = *parent, .high = 1};
  event.tokens.resize(kBlockSize);
  std::iota(event.tokens.begin(), event.tokens.end(), static_cast<std::int64_t>(hash) * 10);
  event.block_size = kBlockSize;
  event.lora_name = std::move(lora);
  event.offsets_stated = true;
  return event;
}

class Beliefs : public testing::Test {
 protected:
  void apply(double time_s, BlockStored event) {
    state.apply({.timestamp_s = time_s, .rank = 0, .events = {std::move(event)}});
  }
  [[nodiscard]] std::size_t blocks() const { return index.blocks(kEngine); }

  const keys::Scheme scheme{contract::development_identity_key()};
  index::ExactIndex index;
  test::IndexedNormaliser state{
      {.id = kEngine, .model = "m", .adapters = {.from_s = {{"ad", kReloaded_s}}, .others = true}},
      scheme,
      index};
};

TEST_F(Beliefs, EarlierEventsDoNotCountForTheReloadedAdapter) {
  apply(kReloaded_s - 1, stored(1, std::nullopt, "ad"));
  // Later blocks of a request of the earlier adapter do not count either.
  apply(kReloaded_s + 1, stored(2, 1, "ad"));
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state.statistics().unknown_content, 2U);
  EXPECT_TRUE(state.missing().unknown_content);
  apply(kReloaded_s, stored(3, std::nullopt, "ad"));
  apply(kReloaded_s + 1, stored(4, 3, "ad"));
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(Beliefs, OtherAdaptersAndTheBaseModelKeepTheirs) {
  apply(1, stored(1, std::nullopt, std::nullopt));
  apply(1, stored(2, std::nullopt, "another"));
  EXPECT_EQ(blocks(), 2U);
}

}  // namespace
}  // namespace sightline::events
