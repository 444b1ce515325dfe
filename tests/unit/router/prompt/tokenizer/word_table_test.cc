// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/word_table.h"

#include <gtest/gtest.h>

#include "tests/unit/router/prompt/tokenizer/fixture.h"

namespace sightline::tokenizer {
namespace {

SmallWord small(std::string_view word) { return SmallWord::of(word, word.data() + word.size()); }

TEST(SmallWord, IgnoresTheTextAfterTheWord) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t size = 1; size <= SmallWord::kSizeMax; ++size) {
    const std::string_view word = std::string_view(text).substr(0, size);
    EXPECT_EQ(small(word), SmallWord::of(word, text.data() + text.size())) << size;
  }
}

TEST(SmallWord, ZeroBytesCount) {
  EXPECT_NE(small(std::string_view("a\0", 2)), small("a"));
  EXPECT_NE(small(std::string_view("\0", 1)), small(std::string_view("\0\0", 2)));
}

TEST(WordTable, EveryWordMergesToItsToken) {
  const auto file = parse_model_file(read_test_file("qwen3.tokenizer.json"));
  const auto merges = MergeTable::create(file->vocabulary, file->merges);
  const WordTable table(file->vocabulary, *merges);
  std::size_t found = 0;
  std::size_t reachable = 0;
  for (TokenId id = 0; id < file->vocabulary.ids_end(); ++id) {
    const std::string_view content = file->vocabulary.content_of(id);
    if (content.size() > SmallWord::kSizeMax) continue;
    std::vector<TokenId> ids;
    merges->encode(content, ids);
    const TokenId known = table.find(small(content), small(content).hash());
    ASSERT_TRUE(known == WordTable::kNone || ids == std::vector{known}) << id;
    reachable += ids.size() == 1 ? 1 : 0;
    found += known == WordTable::kNone ? 0 : 1;
  }
  EXPECT_GT(found, reachable * 8 / 10);
}

TEST(WordCache, ReturnsExactlyTheInsertedWords) {
  WordCache cache;
  const SmallWord word = small("word");
  const std::array<TokenId, 3> ids = {7, kTokenIdMax, 9};
  std::array<TokenId, WordCache::kIdsMax> out{};
  EXPECT_EQ(cache.find_small(word, word.hash(), out.data()), 0U);
  cache.insert_small(word, word.hash(), ids);
  ASSERT_EQ(cache.find_small(word, word.hash(), out.data()), 3U);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), out.begin()));
  EXPECT_EQ(cache.find_small(small("ward"), word.hash(), out.data()), 0U);

  const std::string large = "a word of many bytes";
  cache.insert(large, hash_of_word(large), ids);
  ASSERT_EQ(cache.find(large, hash_of_word(large), out.data()), 3U);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), out.begin()));
  EXPECT_EQ(cache.find("a word of many bytez", hash_of_word(large), out.data()), 0U);
}

TEST(WordCache, WordsThatDoNotFitAreNotKept) {
  WordCache cache;
  std::array<TokenId, WordCache::kIdsMax> out{};
  const std::vector<TokenId> many(WordCache::kIdsMax + 1, 1);
  const std::string large(20, 'x');
  cache.insert(large, hash_of_word(large), many);
  EXPECT_EQ(cache.find(large, hash_of_word(large), out.data()), 0U);
  const std::string longer(70, 'x');
  cache.insert(longer, hash_of_word(longer), std::span(many).first(2));
  EXPECT_EQ(cache.find(longer, hash_of_word(longer), out.data()), 0U);
  const SmallWord word = small("word");
  cache.insert_small(word, word.hash(), std::span(many).first(WordCache::kSmallIdsMax + 1));
  EXPECT_EQ(cache.find_small(word, word.hash(), out.data()), 0U);
}

}  // namespace
}  // namespace sightline::tokenizer
