// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/api_error.h"

#include <gtest/gtest.h>

namespace sightline::api {
namespace {

TEST(ApiError, ClientErrorHasStatus400AndNullParam) {
  const Error error = client_error(ErrorCode::InvalidArgument, "say \"why\"");
  EXPECT_EQ(status_of(error), 400);
  EXPECT_EQ(
      body_of(error),
      R"({"error":{"message":"say \"why\"","type":"BadRequestError","param":null,"code":400}})");
}

TEST(ApiError, UnknownModelHasStatus404AndEngineErrorHas500) {
  EXPECT_EQ(status_of(client_error(ErrorCode::NotFound, "x")), 404);
  EXPECT_NE(body_of(client_error(ErrorCode::NotFound, "x")).find("NotFoundError"),
            std::string::npos);
  EXPECT_EQ(status_of(internal_error("x")), 500);
  EXPECT_NE(body_of(internal_error("x")).find("InternalServerError"), std::string::npos);
}

TEST(ApiError, ValueErrorNamesTheFieldTwice) {
  EXPECT_EQ(body_of(value_error("too big.", "max_tokens", "9")),
            R"x({"error":{"message":"too big. (parameter=max_tokens, value=9)",)x"
            R"x("type":"BadRequestError","param":"max_tokens","code":400}})x");
}

TEST(ApiError, SchemaErrorHasThePydanticForm) {
  EXPECT_EQ(
      body_of(schema_error(
          {.type = "missing", .where = "body", .message = "Field required", .input = "None"})),
      R"({"error":{"message":"1 validation error:\n  {'type': 'missing', 'loc': 'body', )"
      R"('msg': 'Field required', 'input': 'None'}","type":"Bad Request","param":"body",)"
      R"("code":400}})");
}

}  // namespace
}  // namespace sightline::api
