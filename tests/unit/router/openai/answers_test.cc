// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "router/openai/error_body.h"
#include "router/openai/usage.h"

namespace sightline::openai {
namespace {

TEST(ErrorBody, HasTheShapeThatVllmAndOpenAiClientsRead) {
  EXPECT_EQ(
      error_body(client_error(ErrorCode::NotFound, "The model `x` does not exist.", "model")),
      R"({"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":"model","code":404}})");
  EXPECT_EQ(
      error_body(internal_error("a \"quoted\" reason")),
      R"({"error":{"message":"a \"quoted\" reason","type":"InternalServerError","param":null,"code":500}})");
}

TEST(ErrorBody, TheStatusFollowsTheBlame) {
  EXPECT_EQ(http_status_of(client_error(ErrorCode::InvalidArgument, "")), 400);
  EXPECT_EQ(http_status_of(client_error(ErrorCode::TooLarge, "")), 413);
  EXPECT_EQ(http_status_of(client_error(ErrorCode::Timeout, "")), 408);
  EXPECT_EQ(http_status_of(worker_error(ErrorCode::Timeout, "", true)), 504);
  EXPECT_EQ(http_status_of(worker_error(ErrorCode::Unavailable, "", true)), 502);
  EXPECT_EQ(http_status_of(worker_error(ErrorCode::Corrupt, "", true)), 502);
  EXPECT_EQ(http_status_of(Error{ErrorCode::Unavailable, Blame::Internal, true, "", ""}), 503);
  EXPECT_EQ(http_status_of(Error{ErrorCode::Overloaded, Blame::Internal, true, "", ""}), 503);
}

TEST(ErrorBody, AStreamErrorIsOneEventWithoutDone) {
  const std::string event = error_event(worker_error(ErrorCode::Unavailable, "lost", false));
  EXPECT_TRUE(event.starts_with("data: {\"error\":"));
  EXPECT_TRUE(event.ends_with("}}\n\n"));
  EXPECT_EQ(event.find("[DONE]"), std::string::npos);
}

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
