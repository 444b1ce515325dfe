// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/output_words.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/support/paths.h"

namespace sightline::core {
namespace {

std::unique_ptr<const tokenizer::Tokenizer> qwen_tokenizer() {
  std::ifstream file(test::in_build("models/qwen2-vl/tokenizer.json"));
  std::ostringstream json;
  json << file.rdbuf();
  auto created = tokenizer::Tokenizer::create(json.str());
  EXPECT_TRUE(created.ok());
  return std::move(created).value();
}

TEST(OutputWords, TextEncodesToTheSameTokens) {
  const auto tokenizer = qwen_tokenizer();
  const auto words = OutputWords::create(*tokenizer);
  ASSERT_TRUE(words.ok()) << words.error().message;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<TokenId> tokens;
    std::string text;
    for (std::size_t position = 0; position < 100; ++position) {
      const auto& word = (*words)->word(seed, position);
      tokens.push_back(word.token);
      text += word.text;
      ASSERT_EQ((*words)->text_of(word.token), word.text);
    }
    std::vector<TokenId> again;
    ASSERT_TRUE(tokenizer->encode(text, again).ok());
    ASSERT_EQ(again, tokens) << text;
  }
}

TEST(OutputWords, EqualSeedsGiveEqualAnswers) {
  const OutputWords words({{1, "a"}}, {{2, " b"}, {3, " c"}, {4, " d"}, {5, " e"}});
  const auto answer = [&words](std::uint64_t seed) {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < 30; ++i) tokens.push_back(words.word(seed, i).token);
    return tokens;
  };
  const std::vector<TokenId> prompt{7, 8, 9};
  EXPECT_EQ(answer(answer_seed(prompt, 0)), answer(answer_seed(prompt, 0)));
  EXPECT_NE(answer(answer_seed(prompt, 0)), answer(answer_seed(prompt, 1)));
  EXPECT_NE(answer(answer_seed(prompt, 0)), answer(answer_seed({7, 9, 8}, 0)));
}

TEST(OutputWords, UnknownTokenHasNoText) {
  const OutputWords words({{1, "a"}}, {{2, " b"}});
  EXPECT_EQ(words.text_of(9), "");
}

}  // namespace
}  // namespace sightline::core
