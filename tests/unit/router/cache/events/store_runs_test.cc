// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/store_runs.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::events {
namespace {

using keys::BlockKey;
using operations::Store;
using operations::Tier;

TEST(StoreRuns, JoinsBlocksThatFollowEachOther) {
  StoreRuns runs;
  runs.add(Tier::Gpu, std::nullopt, BlockKey(1));
  runs.add(Tier::Gpu, BlockKey(1), BlockKey(2));
  runs.add(Tier::Gpu, BlockKey(1), BlockKey(3));
  runs.add(Tier::Gpu, std::nullopt, BlockKey(4));
  runs.add(Tier::Cpu, BlockKey(4), BlockKey(5));
  const std::vector<Store> expected{
      {.tier = Tier::Gpu, .parent = std::nullopt, .keys = {BlockKey(1), BlockKey(2)}},
      {.tier = Tier::Gpu, .parent = BlockKey(1), .keys = {BlockKey(3)}},
      {.tier = Tier::Gpu, .parent = std::nullopt, .keys = {BlockKey(4)}},
      {.tier = Tier::Cpu, .parent = BlockKey(4), .keys = {BlockKey(5)}}};
  EXPECT_EQ(runs.take(), expected);
}

TEST(StoreRuns, GivesEachBlockOnce) {
  StoreRuns runs;
  EXPECT_TRUE(runs.take().empty());
  runs.add(Tier::Gpu, std::nullopt, BlockKey(1));
  EXPECT_EQ(runs.take().size(), 1U);
  EXPECT_TRUE(runs.take().empty());
  runs.add(Tier::Gpu, BlockKey(1), BlockKey(2));
  EXPECT_EQ(runs.take().front().parent, BlockKey(1));
}

}  // namespace
}  // namespace sightline::events
