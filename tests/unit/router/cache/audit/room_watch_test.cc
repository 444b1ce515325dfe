// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/room_watch.h"

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"

namespace sightline::audit {
namespace {

using std::chrono_literals::operator""s;
using keys::BlockKey;
using operations::Tier;

constexpr CacheId kA{1};
constexpr CacheId kB{2};

std::vector<BlockKey> chain(std::uint64_t from, std::size_t count) {
  std::vector<BlockKey> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back({from + i});
  return keys;
}

class RoomWatchTest : public testing::Test {
 protected:
  void look() { watch.look(rooms, now += 2s); }
  [[nodiscard]] bool has(const std::string& series) const {
    return metrics.scrape().find("sightline_" + series + "\n") != std::string::npos;
  }

  index::ExactIndex index{160};
  operations::CacheFacts facts{.missing = {.forgotten = false}};
  std::vector<CacheRoom> rooms{{kA, "a", 120}, {kB, "b", 120}};
  std::vector<CacheId> asked;
  bool can_be_asked = true;
  runtime::Metrics metrics;
  Instant now{1'000s};
  RoomWatch watch{{},
                  {.index = index,
                   .facts = [this](CacheId) { return std::optional(facts); },
                   .set_bounds =
                       [this](const std::vector<CacheRoom>& all) {
                         std::vector<index::ExactIndex::Bound> bounds;
                         for (const auto& room : all) bounds.push_back({room.cache, room.blocks});
                         index.set_bounds(bounds);
                       },
                   .take_gave_way = [this] { return index.take_gave_way(); },
                   .ask_again =
                       [this](CacheId cache) {
                         asked.push_back(cache);
                         return can_be_asked;
                       }},
                  metrics};
};

TEST_F(RoomWatchTest, RefusedBlocksAreNamedAndRequestedWithRoom) {
  index.store(kA, Tier::Gpu, chain(0, 100));
  look();
  EXPECT_EQ(watch.lack_of(kA), "") << "nothing is missing";
  index.store(kB, Tier::Gpu, chain(1'000, 100));
  look();
  EXPECT_EQ(watch.lack_of(kB),
            "the index is full: some of its blocks are missing. The router requests them again "
            "when the index has room");
  EXPECT_TRUE(has("index_lacked_blocks{worker=\"b\"} 40"));
  EXPECT_TRUE(asked.empty()) << "there is no room yet";
  index.remove(kA, Tier::Gpu, chain(0, 9));
  look();
  EXPECT_TRUE(asked.empty()) << "it would be full again at once";
  index.drop(kA);
  look();
  EXPECT_EQ(asked, std::vector{kB});
  EXPECT_TRUE(has("index_asked_again_total{worker=\"b\"} 1"));
  index.drop(kB);
  index.store(kB, Tier::Gpu, chain(1'000, 100));
  look();
  EXPECT_EQ(watch.lack_of(kB), "");
  EXPECT_EQ(watch.lack_of(kA), "");
}

TEST_F(RoomWatchTest, AsksThatDoNotHelpComeWithPausesThatGrow) {
  index.store(kB, Tier::Gpu, chain(0, 200));
  index.remove(kB, Tier::Gpu, chain(0, 100));  // 40 of them are still refused
  for (int i = 0; i < 300; ++i) look();        // ten minutes
  // Immediately, then after 10, 20, 40, 80, 160 and 300 s.
  EXPECT_EQ(asked.size(), 6U);
}

TEST_F(RoomWatchTest, WhoCannotBeAskedIsNotCounted) {
  can_be_asked = false;
  index.store(kB, Tier::Gpu, chain(0, 200));
  index.remove(kB, Tier::Gpu, chain(0, 100));
  look();
  EXPECT_EQ(asked.size(), 1U);
  EXPECT_FALSE(has("index_asked_again_total{worker=\"b\"} 1"));
}

TEST_F(RoomWatchTest, WhoGivesWayIsNamedAndCounted) {
  rooms[1].blocks = 20;
  look();
  index.store(kB, Tier::Gpu, chain(0, 200));
  index.store(kA, Tier::Gpu, chain(1'000, 100));
  EXPECT_EQ(index.blocks(kA), 100U);
  look();
  EXPECT_EQ(watch.lack_of(kB),
            "it had more blocks than its bound while the index was full: all were dropped, and "
            "blocks beyond the bound are not stored");
  EXPECT_TRUE(has("index_gave_way_total{worker=\"b\"} 1"));
}

TEST_F(RoomWatchTest, OverfullEngineIsNamedAtTheSecondLook) {
  rooms[0].blocks = 20;
  index.store(kA, Tier::Gpu, chain(0, 21));
  look();
  EXPECT_EQ(watch.lack_of(kA), "");
  look();
  EXPECT_EQ(watch.lack_of(kA),
            "its KV events announced more blocks than its engine has (gpu_blocks)");
  facts.upper_bound = true;
  look();
  EXPECT_EQ(watch.lack_of(kA), "") << "its claims are an upper bound by its nature";
}

TEST_F(RoomWatchTest, WhatIsNotRememberedElsewhereIsNamed) {
  facts.missing.no_room = true;
  look();
  EXPECT_EQ(watch.lack_of(kA),
            "it announced more blocks than the router or its agent can keep: some are missing");
}

}  // namespace
}  // namespace sightline::audit
