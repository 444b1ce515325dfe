// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/usage.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/json.h"

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

std::optional<Usage> read_in_pieces(std::string_view text, std::size_t piece_bytes) {
  UsageReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    // A heap copy of its own: a view that outlives the piece is seen by a sanitizer.
    const std::string piece(text.substr(at, piece_bytes));
    reader.read(piece);
  }
  return reader.usage();
}

// By the JSON parser, as the member of the whole document.
std::optional<std::uint64_t> naive_prompt_tokens(const std::string& text) {
  const auto document = json::Document::parse(text);
  if (!document.ok()) return std::nullopt;
  const auto usage = document->root().find("usage");
  const auto tokens = usage ? usage->find("prompt_tokens") : std::nullopt;
  const auto count = tokens ? tokens->integer() : std::nullopt;
  if (!count || *count < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*count);
}

bool naive_alone(const std::string& text) {
  const auto document = json::Document::parse(text);
  const auto choices = document.ok() ? document->root().find("choices") : std::nullopt;
  return choices && choices->is(json::Kind::Array) && choices->size() == 0;
}

TEST(UsageReader, ReadsTheSameHoweverTheTextIsCut) {
  const std::vector<std::string> texts{
      R"({"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":[]})",
      R"( { "choices" : [ ] , "usage" : { "prompt_tokens" : 3 } } )",
      R"({"choices":[{"text":"\"usage\":{\"prompt_tokens\":4}"}],"usage":{"prompt_tokens":5}})",
      R"({"choices":[{"usage":{"prompt_tokens":6}}]})",
      R"({"usage":{"prompt_tokens":7},"usage":{"prompt_tokens":8}})",
      R"({"usage":{"prompt_tokens":9},"usage":null})",
      R"({"usages":{"prompt_tokens":1},"x":"\\","usag":0,"usage":{"prompt_tokens":10}})",
      R"({"x":"}]\"","y":[[1,{"a":","}],2],"usage":{"prompt_tokens":11},"prompt_logprobs":[{}]})",
      R"({"x":"\\\\\"\\\"","y":"\"\\","z":"\\n\t\"\"","usage":{"prompt_tokens":17},"w":"\u005c\""})",
      R"({"choices":[{}],"choices":[],"usage":{"prompt_tokens":18}})",
      R"({"choices":[],"choices":[[]],"usage":{"prompt_tokens":19}})",
      R"({"choices":{},"usage":{"prompt_tokens":20}})",
      R"({"choices":"[]","usage":{"prompt_tokens":21}})",
      R"({"choices":[""],"usage":{"prompt_tokens":22}})",
      R"({"choices":null,"usage":{"prompt_tokens":23}})",
      R"([{"usage":{"prompt_tokens":12}}])",
      R"({"usage":{"prompt_tokens":13})",
      R"({"usage":{"prompt_tokens":14}}{})",
      R"({"usage":{"prompt_tokens":15.5}})",
      R"({"usage":[1,{"prompt_tokens":16}]})",
      R"("usage")",
      R"({})",
      "",
  };
  for (const std::string& text : texts) {
    const auto want = naive_prompt_tokens(text);
    for (std::size_t piece = 1; piece <= text.size() + 1; ++piece) {
      const auto usage = read_in_pieces(text, piece);
      ASSERT_EQ(usage.has_value(), want.has_value()) << text << " in pieces of " << piece;
      if (!usage) continue;
      ASSERT_EQ(usage->prompt_tokens, *want) << text << " in pieces of " << piece;
      ASSERT_EQ(usage->alone, naive_alone(text)) << text << " in pieces of " << piece;
    }
  }
}

TEST(UsageReader, TakesNothingButAnEmptyArrayForNoChoices) {
  const std::string malformed = R"({"choices":[]1,"usage":{"prompt_tokens":1}})";
  for (const std::size_t piece : {1U, 13U, 100U}) {
    ASSERT_TRUE(read_in_pieces(malformed, piece).has_value());
    EXPECT_FALSE(read_in_pieces(malformed, piece)->alone);
  }
}

TEST(UsageReader, KeepsNothingOfLongMembers) {
  const std::string filler(UsageReader::kMemberBytesMax, ' ');
  const std::string usage = R"({"prompt_tokens":1})";
  const auto fits =
      R"({"choices":[)" + filler + R"(],"usage":)" + filler.substr(usage.size()) + usage + "}";
  ASSERT_TRUE(read_in_pieces(fits, 1000).has_value());
  EXPECT_TRUE(read_in_pieces(fits, 1000)->alone);
  const auto above = R"({"usage":)" + filler + usage + "}";
  EXPECT_FALSE(read_in_pieces(above, 1000).has_value());
}

}  // namespace
}  // namespace sightline::openai
