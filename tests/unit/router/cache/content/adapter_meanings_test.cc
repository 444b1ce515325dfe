// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/content/adapter_meanings.h"

#include <gtest/gtest.h>

namespace sightline::content {
namespace {

TEST(Adapters, UnchangedNameAppliesFromTheBeginning) {
  Adapters adapters;
  for (const double now_s : {100.0, 105.0, 110.0}) {
    EXPECT_FALSE(adapters.learn({{"a", "/one", now_s}, {"b", "/two", now_s}}));
  }
  EXPECT_TRUE(adapters.meanings().apply_to("a", 1));
  EXPECT_TRUE(adapters.meanings().apply_to("loaded a moment ago", 1));
}

TEST(Adapters, NameOfAnotherPathAppliesOnlyToLaterEvents) {
  Adapters adapters;
  adapters.learn({{"a", "/one", 100}, {"b", "/two", 100}});
  EXPECT_TRUE(adapters.learn({{"a", "/other", 105}, {"b", "/two", 105}}));
  EXPECT_FALSE(adapters.meanings().apply_to("a", 105.9));
  EXPECT_TRUE(adapters.meanings().apply_to("a", 107));
  EXPECT_TRUE(adapters.meanings().apply_to("b", 1));
  EXPECT_FALSE(adapters.learn({{"a", "/other", 110}, {"b", "/two", 110}}));
  // Back to the first path: blocks learned meanwhile belong to the other one.
  EXPECT_TRUE(adapters.learn({{"a", "/one", 115}, {"b", "/two", 115}}));
  EXPECT_FALSE(adapters.meanings().apply_to("a", 112));
}

TEST(Adapters, NameMayReturnWithAnotherMeaning) {
  Adapters adapters;
  adapters.learn({{"a", "/one", 100}, {"b", "/two", 100}});
  EXPECT_FALSE(adapters.learn({{"b", "/two", 105}}));
  EXPECT_TRUE(adapters.learn({{"a", "/one", 110}, {"b", "/two", 110}}));
  EXPECT_FALSE(adapters.meanings().apply_to("a", 110));
  EXPECT_TRUE(adapters.meanings().apply_to("a", 112));
}

TEST(Adapters, NameWithoutATimeNeverAppliesAgain) {
  for (const double second_s : {0.0, 100.0}) {  // no time, or the time of the start
    Adapters adapters;
    adapters.learn({{"a", "/one", 100}});
    EXPECT_TRUE(adapters.learn({{"a", "/other", second_s}}));
    EXPECT_FALSE(adapters.meanings().apply_to("a", 1e12));
  }
}

TEST(Adapters, NamesAboveTheLimitDoNotApply) {
  Adapters adapters;
  for (std::size_t i = 0; i < kAdaptersMax; ++i) {
    EXPECT_FALSE(adapters.learn({{"a" + std::to_string(i), "/one", 100}}));
  }
  EXPECT_TRUE(adapters.learn({{"more", "/one", 100}}));
  EXPECT_FALSE(adapters.learn({{"more", "/one", 100}}));
  EXPECT_FALSE(adapters.meanings().apply_to("more", 200));
  EXPECT_TRUE(adapters.meanings().apply_to("a0", 200));
}

}  // namespace
}  // namespace sightline::content
