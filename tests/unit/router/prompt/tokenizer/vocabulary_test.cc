// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::tokenizer {
namespace {

TEST(Vocabulary, FindsTokensByContentAndById) {
  Vocabulary vocabulary(3);
  EXPECT_TRUE(vocabulary.add(5, "five"));
  EXPECT_TRUE(vocabulary.add(0, std::string("\0", 1)));
  EXPECT_EQ(vocabulary.find("five"), 5U);
  EXPECT_EQ(vocabulary.find(std::string_view("\0", 1)), 0U);
  EXPECT_EQ(vocabulary.find("fiv"), std::nullopt);
  EXPECT_EQ(vocabulary.content_of(5), "five");
  EXPECT_EQ(vocabulary.content_of(3), "");
  EXPECT_EQ(vocabulary.content_of(6), "");
  EXPECT_EQ(vocabulary.size(), 2U);
  EXPECT_EQ(vocabulary.ids_end(), 6U);
}

TEST(Vocabulary, RefusesAnIdOrAContentASecondTime) {
  Vocabulary vocabulary(3);
  EXPECT_TRUE(vocabulary.add(1, "a"));
  EXPECT_FALSE(vocabulary.add(1, "b"));
  EXPECT_FALSE(vocabulary.add(2, "a"));
  EXPECT_EQ(vocabulary.size(), 1U);
  EXPECT_EQ(vocabulary.find("b"), std::nullopt);
}

AddedTokens tokens(std::vector<std::string> contents) {
  std::vector<AddedToken> list;
  for (std::string& content : contents) {
    list.push_back({static_cast<TokenId>(list.size()), std::move(content)});
  }
  return AddedTokens(std::move(list));
}

TEST(AddedTokens, LeftmostAndThenLongestMatchCounts) {
  const AddedTokens added = tokens({"<a>", "<a>b", "a>bcdefgh"});
  const auto match = added.find("x<a>bcdefgh", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->begin, 1U);
  EXPECT_EQ(match->token->content, "<a>b");
  EXPECT_FALSE(added.find("x<a>bcdefg", 2).has_value());
}

TEST(AddedTokens, FindsOneByteTokenAtTheEnd) {
  const AddedTokens added = tokens({"#", "##"});
  EXPECT_EQ(added.find("x#", 0)->token->content, "#");
  EXPECT_EQ(added.find("x##", 0)->token->content, "##");
  EXPECT_EQ(added.find("x#y", 0)->token->content, "#");
  EXPECT_FALSE(tokens({}).find("x#", 0).has_value());
}

TEST(AddedTokens, MatchesEqualAPlainSearch) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    const auto word = [&rng](std::uint32_t size) {
      std::string text;
      while (text.size() < size) text += static_cast<char>('a' + rng.below(3));
      return text;
    };
    std::vector<std::string> contents;
    for (std::uint32_t left = rng.below(5); left > 0; --left) {
      contents.push_back(word(1 + rng.below(4)));
    }
    const std::string text = word(rng.below(12));
    const AddedTokens added = tokens(contents);
    std::size_t want_begin = 0;
    std::string want;
    for (; want_begin < text.size() && want.empty(); ++want_begin) {
      for (const std::string& content : contents) {
        const bool here = text.compare(want_begin, content.size(), content) == 0;
        if (here && content.size() > want.size()) want = content;
      }
    }
    const auto match = added.find(text, 0);
    ASSERT_EQ(match.has_value(), !want.empty());
    if (!match) continue;
    ASSERT_EQ(match->begin + 1, want_begin);
    ASSERT_EQ(match->token->content, want);
  }
}

}  // namespace
}  // namespace sightline::tokenizer
