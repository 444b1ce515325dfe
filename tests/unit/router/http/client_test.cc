// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/http/client.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::http {
namespace {

TEST(ServerUrl, GivesHostPortAndPrefix) {
  struct Case {
    std::string url;
    Endpoint want;
    std::string want_prefix;
  };
  for (const auto& test : std::vector<Case>{{"http://127.0.0.1:8101", {"127.0.0.1", 8101}, ""},
                                            {"HTTP://host", {"host", 80}, ""},
                                            {"http://host/", {"host", 80}, ""},
                                            {"http://host:1/base/", {"host", 1}, "/base"},
                                            {"http://[::1]:65535/a/b", {"::1", 65535}, "/a/b"},
                                            {"http://[fe80::1]", {"fe80::1", 80}, ""}}) {
    const auto parsed = parse_server_url(test.url);
    ASSERT_TRUE(parsed.ok()) << test.url;
    EXPECT_EQ(parsed->endpoint, test.want) << test.url;
    EXPECT_EQ(parsed->prefix, test.want_prefix) << test.url;
  }
}

TEST(ServerUrl, SaysWhatIsWrong) {
  struct Case {
    std::string url;
    ErrorCode want;
  };
  for (const auto& test : std::vector<Case>{{"", ErrorCode::InvalidArgument},
                                            {"host:80", ErrorCode::InvalidArgument},
                                            {"https://host", ErrorCode::Unsupported},
                                            {"http://", ErrorCode::InvalidArgument},
                                            {"http://:80", ErrorCode::InvalidArgument},
                                            {"http://host:", ErrorCode::InvalidArgument},
                                            {"http://host:0", ErrorCode::InvalidArgument},
                                            {"http://host:65536", ErrorCode::InvalidArgument},
                                            {"http://host:8x", ErrorCode::InvalidArgument},
                                            {"http://host:-1", ErrorCode::InvalidArgument},
                                            {"http://[::1", ErrorCode::InvalidArgument},
                                            {"http://[::1]x", ErrorCode::InvalidArgument},
                                            {"http://user@host", ErrorCode::InvalidArgument},
                                            {"http://host?x", ErrorCode::InvalidArgument},
                                            {"http://ho st", ErrorCode::InvalidArgument}}) {
    const auto parsed = parse_server_url(test.url);
    ASSERT_FALSE(parsed.ok()) << test.url;
    EXPECT_EQ(parsed.error().code, test.want) << test.url;
    EXPECT_NE(parsed.error().message.find("http://host:port"), std::string::npos) << test.url;
  }
}

}  // namespace
}  // namespace sightline::http
