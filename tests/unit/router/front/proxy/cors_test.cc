// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/cors.h"

#include <gtest/gtest.h>

namespace sightline::proxy {
namespace {

constexpr std::string_view kAllowOrigin = "access-control-allow-origin";

std::string allowed_for(const std::vector<std::string>& allowed,
                        std::optional<std::string_view> origin) {
  http::Headers answer;
  allow_origin(answer, allowed, origin);
  return std::string(answer.find(kAllowOrigin).value_or("none"));
}

http::Request preflight(std::string_view origin) {
  http::Request request;
  request.method = "OPTIONS";
  request.headers.set("Origin", origin);
  request.headers.set("Access-Control-Request-Method", "POST");
  request.headers.set("Access-Control-Request-Headers", "authorization,x-a");
  return request;
}

TEST(Cors, AllowsTheOriginsOfTheSetting) {
  EXPECT_EQ(allowed_for({"*"}, "https://a"), "*");
  EXPECT_EQ(allowed_for({"*"}, std::nullopt), "none") << "nobody asks";
  EXPECT_EQ(allowed_for({"https://a", "https://b:1"}, "https://b:1"), "https://b:1");
  EXPECT_EQ(allowed_for({"https://a"}, "https://A"), "none");
  EXPECT_EQ(allowed_for({"https://a"}, "null"), "none");
  EXPECT_EQ(allowed_for({"off"}, "off"), "none");
  EXPECT_EQ(allowed_for({}, "https://a"), "none");
}

TEST(Cors, AnswerVariesByOriginWithAList) {
  http::Headers answer;
  allow_origin(answer, {"https://a"}, std::nullopt);
  EXPECT_EQ(answer.find("vary"), "Origin");
}

TEST(Cors, PreflightAnswerAllowsTheHeadersItNames) {
  ASSERT_TRUE(is_preflight(preflight("https://a")));
  const http::Response answer = preflight_answer(preflight("https://a"), {"*"});
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.headers.find("access-control-allow-headers"), "authorization,x-a");
  EXPECT_TRUE(answer.headers.has_token("access-control-allow-methods", "POST"));
  const http::Response refused = preflight_answer(preflight("https://a"), {"https://b"});
  EXPECT_FALSE(refused.headers.find("access-control-allow-methods"));
}

TEST(Cors, OtherRequestsAreNoPreflight) {
  http::Request request = preflight("https://a");
  request.method = "POST";
  EXPECT_FALSE(is_preflight(request));
  request.method = "OPTIONS";
  request.headers.remove("origin");
  EXPECT_FALSE(is_preflight(request));
}

}  // namespace
}  // namespace sightline::proxy
