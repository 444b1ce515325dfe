// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/merges.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/unit/router/prompt/tokenizer/fixture.h"
#include "tests/unit/router/prompt/tokenizer/naive_tokenizer.h"

namespace sightline::tokenizer {
namespace {

const ModelFile& qwen3_file() {
  static const auto file = parse_model_file(read_test_file("qwen3.tokenizer.json"));
  return file.value();
}

const MergeTable& qwen3_merges() {
  static const auto table = MergeTable::create(qwen3_file().vocabulary, qwen3_file().merges);
  return *table;
}

const NaiveTokenizer& naive() {
  static const NaiveTokenizer tokenizer(read_test_file("qwen3.tokenizer.json"));
  return tokenizer;
}

std::vector<TokenId> merged(std::string_view word) {
  std::vector<TokenId> ids;
  qwen3_merges().encode(word, ids);
  return ids;
}

std::string random_word(Rng& rng, std::string_view alphabet, std::uint32_t size) {
  std::string word;
  while (word.size() < size) {
    word += alphabet[rng.below(static_cast<std::uint32_t>(alphabet.size()))];
  }
  return word;
}

TEST(MergeTable, EveryWordOfOneByteIsItsToken) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string word(1, static_cast<char>(byte));
    EXPECT_EQ(merged(word), std::vector{*qwen3_file().vocabulary.find(word)});
  }
}

// Sizes around 16, 32 and 64 pass from one block of keys to the next, and to the heap.
TEST(MergeTable, WordsOfEverySizeMergeAsTheTextualMergesDo) {
  constexpr std::string_view kAlphabets[] = {"a", "ab", " ", "etaoinshr", "=-", "\xE4\xBD\xA0\xA5"};
  Rng rng(1);
  for (std::uint32_t size = 1; size <= 140; ++size) {
    for (const std::string_view alphabet : kAlphabets) {
      const std::string word = random_word(rng, alphabet, size);
      ASSERT_EQ(merged(word), naive().encode_word(word)) << word;
    }
  }
}

TEST(MergeTable, RefusesAPairThatOccursTwice) {
  std::vector<Merge> merges = qwen3_file().merges;
  merges.push_back(merges[7]);
  EXPECT_FALSE(MergeTable::create(qwen3_file().vocabulary, merges).has_value());
}

// In quadratic time this word would need half a million million steps. The test would exceed its
// time limit.
TEST(MergeTable, LongWordOfOneLetterIsNotQuadratic) {
  constexpr std::size_t kSize = 1U << 20U;
  for (const char letter : {'a', ' '}) {
    std::size_t bytes = 0;
    for (const TokenId id : merged(std::string(kSize, letter))) {
      bytes += qwen3_file().vocabulary.content_of(id).size();
    }
    EXPECT_EQ(bytes, kSize) << letter;
  }
}

const WordCuts& qwen3_cuts() {
  static const WordCuts cuts(qwen3_file().vocabulary, qwen3_file().merges);
  return cuts;
}

// Characters of three bytes, most of them frequent ideographs and kana.
std::string random_ideographs(Rng& rng, std::uint32_t size) {
  std::string word;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t kind = rng.below(8);
    const std::uint32_t c = kind == 0   ? 0x0E01 + rng.below(0x30)
                            : kind == 1 ? 0xAC00 + rng.below(0x2BA4)
                            : kind < 4  ? 0x3041 + rng.below(0xB0)
                                        : 0x4E00 + rng.below(0x1200);
    word += {static_cast<char>(0xE0 | (c >> 12U)), static_cast<char>(0x80 | ((c >> 6U) & 63U)),
             static_cast<char>(0x80 | (c & 63U))};
  }
  return word;
}

TEST(WordCuts, PartsGiveTheIdsOfTheWhole) {
  Rng rng(2);
  std::size_t cuts_made = 0;
  for (int round = 0; round < 20'000; ++round) {
    // Words begin with a blank or a letter.
    const std::string word =
        (round % 3 == 0 ? " " : "") + random_ideographs(rng, 2 + rng.below(12));
    std::vector<TokenId> ids;
    for (std::string_view rest = word; !rest.empty();) {
      const std::size_t cut = qwen3_cuts().next(rest);
      ASSERT_GT(cut, 0U);
      qwen3_merges().encode(rest.substr(0, cut), ids);
      rest.remove_prefix(cut);
      cuts_made += rest.empty() ? 0 : 1;
    }
    ASSERT_EQ(ids, merged(word)) << word;
  }
  EXPECT_GT(cuts_made, 20'000U);
}

// Two neighbours inside of a token, or a part of one, must not be separated.
TEST(WordCuts, NoTokenIsCut) {
  for (const Merge& merge : qwen3_file().merges) {
    const std::string_view token = qwen3_file().vocabulary.content_of(merge.result);
    std::size_t begin = 0;
    while (begin < token.size() && (static_cast<std::uint8_t>(token[begin]) & 0xC0U) == 0x80U) {
      ++begin;
    }
    std::size_t end = token.size();
    while (end > begin && (static_cast<std::uint8_t>(token[end - 1]) & 0x80U) != 0 &&
           (end - begin) % 3 != 0) {
      --end;
    }
    const std::string_view whole = token.substr(begin, end - begin);
    ASSERT_EQ(qwen3_cuts().next(whole), whole.size()) << merge.result;
  }
}

}  // namespace
}  // namespace sightline::tokenizer
