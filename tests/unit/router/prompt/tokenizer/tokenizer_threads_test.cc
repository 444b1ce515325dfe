// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <thread>

#include <gtest/gtest.h>

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/unit/router/prompt/tokenizer/fixture.h"
#include "tests/unit/router/prompt/tokenizer/random_text.h"

namespace sightline::tokenizer {
namespace {

TEST(Tokenizer, ManyThreadsGetTheSameIds) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  Rng rng(7);
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(random_text(rng, 40));
  std::vector<std::vector<TokenId>> want;
  for (const std::string& text : texts) want.push_back(ids_of(qwen3, text));
  std::vector<std::vector<std::vector<TokenId>>> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : got) {
      threads.emplace_back([&] {
        for (const std::string& text : texts) mine.push_back(ids_of(qwen3, text));
      });
    }
  }
  for (const auto& mine : got) EXPECT_EQ(mine, want);
}

}  // namespace
}  // namespace sightline::tokenizer
