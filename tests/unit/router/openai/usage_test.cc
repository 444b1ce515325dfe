// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/usage.h"

#include <gtest/gtest.h>

namespace sightline::openai {
namespace {

TEST(Usage, IsReadFromABodyAndFromTheLastChunk) {
  const auto body = usage_of(
      R"({"choices":[{"index":0}],"usage":{"prompt_tokens":21,"total_tokens":25,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16}}})");
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(body->prompt_tokens, 21U);
  EXPECT_EQ(body->completion_tokens, 4U);
  EXPECT_EQ(body->cached_tokens, 16U);
  EXPECT_FALSE(body->alone);
  const auto chunk =
      usage_of(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}})");
  ASSERT_TRUE(chunk.has_value());
  EXPECT_TRUE(chunk->alone);
  EXPECT_FALSE(chunk->cached_tokens.has_value());
}

TEST(Usage, IsNothingInOtherChunksAndInGarbage) {
  EXPECT_FALSE(usage_of(R"({"choices":[{"delta":{"content":"x"}}]})").has_value());
  EXPECT_FALSE(usage_of(R"({"choices":[],"usage":null})").has_value());
  EXPECT_FALSE(usage_of(R"({"usage":{"prompt_tokens":-1}})").has_value());
  EXPECT_FALSE(usage_of(R"({"usage":{"prompt_tokens")").has_value());
  EXPECT_FALSE(usage_of("[DONE]").has_value());
}

}  // namespace
}  // namespace sightline::openai
