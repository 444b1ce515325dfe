// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/remote_url.h"

#include <gtest/gtest.h>

namespace sightline::media {
namespace {

RemoteUrl read(std::string_view url) {
  const auto read = read_remote_url(url);
  EXPECT_TRUE(read.ok()) << url;
  return read.ok() ? *read : RemoteUrl{};
}

TEST(RemoteUrl, HostAndPortAreTheRequestedOnes) {
  EXPECT_EQ(read("HTTP://A.Example/x").authority(), "a.example:80");
  EXPECT_EQ(read("https://user:word@a.example./").authority(), "a.example:443");
  EXPECT_EQ(read("https://[2001:DB8::1]:8443/").authority(), "2001:db8::1:8443");
  for (const char* url :
       {"http://127.0.0.1/", "http://0x7f.1/", "http://2130706433/", "http://017700000001/"}) {
    EXPECT_EQ(read(url).host, "127.0.0.1") << url;
    EXPECT_EQ(read(url).address, (Bytes{127, 0, 0, 1})) << url;
  }
}

TEST(RemoteUrl, NamesInOtherLettersBecomeAscii) {
  EXPECT_EQ(read("http://b\u00fccher.example/\u00fc").text, "http://xn--bcher-kva.example/%C3%BC");
  EXPECT_EQ(read("http://fa\u00df.example:81/").authority(), "xn--fa-hia.example:81");
  EXPECT_EQ(read("http://user@\u4e2d.example/").text, "http://user@xn--fiq.example/");
  EXPECT_EQ(read("http://\uff11\uff12\uff17.0.0.1/").address, (Bytes{127, 0, 0, 1}));
}

TEST(RemoteUrl, OtherTextsThanHttpUrlsAreRefused) {
  for (const std::string url : {"http://", "ftp://a/", "file:///etc/hostname", "http://a b/",
                                "http://a:99999/", "http://a\uff0fb/", "http://0x7f%2e1/",
                                "http://\u202e.example/", "http://\xff/", "http://a/\r\nX: y"}) {
    const auto read = read_remote_url(url);
    ASSERT_FALSE(read.ok()) << url;
    EXPECT_EQ(read.error().code, ErrorCode::InvalidArgument) << url;
    EXPECT_EQ(read.error().blame, Blame::Client) << url;
  }
  EXPECT_FALSE(read_remote_url(std::string_view("http://a\0b/", 11)).ok());
}

TEST(RemoteUrl, ErrorsShowTheHostWithoutCredentials) {
  EXPECT_EQ(shown_host("http://user:secret@a.example:1/x?token=@y"), "a.example:1");
  EXPECT_EQ(shown_host("http://a.example"), "a.example");
}

}  // namespace
}  // namespace sightline::media
