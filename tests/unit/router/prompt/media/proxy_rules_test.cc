// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/proxy_rules.h"

#include <map>

#include <gtest/gtest.h>

namespace sightline::media {
namespace {

using Environment = std::map<std::string, std::string>;

std::string proxy_for(Environment environment, const std::string& url) {
  const ProxyRules rules =
      proxies_of_environment([&](const char* name) { return environment[name]; });
  const auto read = read_remote_url(url);
  EXPECT_TRUE(read.ok()) << url;
  return std::string(rules.proxy_for(*read));
}

TEST(ProxyRules, SchemeDecidesTheProxy) {
  const Environment both{{"HTTP_PROXY", "http://p:1"}, {"https_proxy", "http://q:2"}};
  EXPECT_EQ(proxy_for(both, "http://a/"), "http://p:1");
  EXPECT_EQ(proxy_for(both, "https://a/"), "http://q:2");
  EXPECT_EQ(proxy_for({{"http_proxy", "small"}, {"HTTP_PROXY", "capital"}}, "http://a/"), "small");
  EXPECT_EQ(proxy_for({{"HTTP_PROXY", "p"}}, "https://a/"), "");
  EXPECT_EQ(proxy_for({{"ALL_PROXY", "socks5://s"}}, "https://a/"), "socks5://s");
  EXPECT_EQ(proxy_for({}, "http://a/"), "");
}

TEST(ProxyRules, ExemptHostsNeedNoProxy) {
  const auto is_direct = [](const std::string& no_proxy, const std::string& url) {
    return proxy_for({{"http_proxy", "p"}, {"NO_PROXY", no_proxy}}, url).empty();
  };
  EXPECT_TRUE(is_direct("*", "http://a/"));
  EXPECT_TRUE(is_direct("x, example.com", "http://EXAMPLE.com./"));
  EXPECT_TRUE(is_direct("example.com", "http://a.example.com/"));
  EXPECT_TRUE(is_direct(".Example.com", "http://example.com/"));
  EXPECT_TRUE(is_direct("*.example.com", "http://a.example.com/"));
  EXPECT_FALSE(is_direct("example.com", "http://anexample.com/"));
  EXPECT_FALSE(is_direct("a.example.com", "http://example.com/"));
  EXPECT_FALSE(is_direct(",, .", "http://example.com/"));
  EXPECT_TRUE(is_direct("example.com:8080", "http://example.com:8080/"));
  EXPECT_FALSE(is_direct("example.com:8080", "http://example.com/"));
  EXPECT_TRUE(is_direct("10.0.0.0/8", "http://10.200.0.1/"));
  EXPECT_FALSE(is_direct("10.0.0.0/8", "http://11.0.0.1/"));
  EXPECT_FALSE(is_direct("10.0.0.0/33", "http://10.0.0.0/"));
  EXPECT_FALSE(is_direct("10.0.0.0/8", "http://10.example/"));
  EXPECT_TRUE(is_direct("::1", "http://[::1]/"));
  EXPECT_TRUE(is_direct("[::1]:80", "http://[0:0::1]/"));
  EXPECT_TRUE(is_direct("fd00::/8", "http://[fd12::1]/"));
  EXPECT_TRUE(is_direct("127.0.0.1", "http://0x7f.1/"));
}

}  // namespace
}  // namespace sightline::media
