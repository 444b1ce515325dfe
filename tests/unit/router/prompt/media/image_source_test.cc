// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/image_source.h"

#include <gtest/gtest.h>

namespace sightline::media {
namespace {

std::string refusal(std::string_view url) {
  const auto source = classify_url(url);
  return source.ok() ? "accepted" : source.error().message;
}

TEST(ImageSource, DataUrlsAreSplitAtTheirFirstComma) {
  const auto source = classify_url("data:image/png;base64,AAAA,BBBB");
  ASSERT_TRUE(source.ok());
  const auto& image = std::get<InlineImage>(*source);
  EXPECT_EQ(image.mime, "image/png");
  EXPECT_EQ(image.payload, "AAAA,BBBB");
}

TEST(ImageSource, DataUrlsMayLackATypeOrCarryParameters) {
  EXPECT_EQ(std::get<InlineImage>(*classify_url("DATA:;base64,AA==")).mime, "");
  const auto source = classify_url("data:image/png;charset=utf-8;base64,AA==");
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(std::get<InlineImage>(*source).mime, "image/png");
  EXPECT_EQ(std::get<InlineImage>(*source).payload, "AA==");
}

TEST(ImageSource, DataUrlsThatAreNotBase64AreRefused) {
  for (const char* url : {"data:image/png,AAAA", "data:base64,AAAA", "data:image/png;Base64,AAAA",
                          "data:image/png;base64;x,AAAA"}) {
    EXPECT_NE(refusal(url).find("only base64 data URLs"), std::string::npos) << url;
  }
  EXPECT_NE(refusal("data:image/png;base64").find("no ','"), std::string::npos);
}

TEST(ImageSource, HttpUrlsAreKeptAsWritten) {
  for (const char* url : {"http://a/b?c#d", "HTTPS://EXAMPLE.com/x y"}) {
    const auto source = classify_url(url);
    ASSERT_TRUE(source.ok()) << url;
    EXPECT_EQ(std::get<RemoteImage>(*source).url, url);
  }
}

TEST(ImageSource, OtherSchemesAreRefusedWithTheAllowedOnes) {
  for (const char* url : {"file:///etc/passwd", "ftp://a/b", "httpx://a", "http:/a", "", "a.png",
                          "//a/b.png", "javascript:alert(1)"}) {
    const auto source = classify_url(url);
    ASSERT_FALSE(source.ok()) << url;
    EXPECT_EQ(source.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(source.error().blame, Blame::Client);
    EXPECT_NE(source.error().message.find("http, https or data URL"), std::string::npos);
  }
  EXPECT_NE(refusal("file:///etc/passwd").find("\"file\""), std::string::npos);
}

TEST(ImageSource, AnOverlongUrlIsRefused) {
  const std::string base = "http://a/";
  EXPECT_TRUE(classify_url(base + std::string(kUrlBytesMax - base.size(), 'x')).ok());
  EXPECT_FALSE(classify_url(base + std::string(kUrlBytesMax - base.size() + 1, 'x')).ok());
}

}  // namespace
}  // namespace sightline::media
