// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/base64.h"

#include <gtest/gtest.h>

namespace sightline {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> pairs[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes_of(bytes)), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, OfAllBytesComesBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(bytes_of(all))), all);
}

TEST(Base64, LineEndsAreSkipped) { EXPECT_EQ(from_base64("Zm9v\r\nYmFy\n"), "foobar"); }

TEST(Base64, AnythingElseIsNone) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "Z=g=", "Zm9-", "====", "Zg==Zg==", "Zm9v ="}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sightline
