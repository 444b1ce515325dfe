// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/error_body.h"

#include <gtest/gtest.h>

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

TEST(ErrorBody, TheTypeSaysWhoseFaultTheStatusIs) {
  const Error error = client_error(ErrorCode::Unsupported, "");
  for (const int status : {400, 411, 413, 414, 417, 431, 505}) {
    EXPECT_NE(error_body(error, status).find("\"BadRequestError\""), std::string::npos) << status;
  }
  EXPECT_NE(error_body(error, 501).find("\"NotImplementedError\""), std::string::npos);
  EXPECT_NE(error_body(error, 500).find("\"InternalServerError\""), std::string::npos);
}

TEST(ErrorBody, TheStatusFollowsTheBlame) {
  EXPECT_EQ(http_status_of(client_error(ErrorCode::InvalidArgument, "")), 400);
  EXPECT_EQ(http_status_of(client_error(ErrorCode::TooLarge, "")), 413);
  EXPECT_EQ(http_status_of(client_error(ErrorCode::Timeout, "")), 408);
  EXPECT_EQ(http_status_of(client_error(ErrorCode::Cancelled, "")), 499);
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

}  // namespace
}  // namespace sightline::openai
