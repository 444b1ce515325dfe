// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/identity_key.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

TEST(IdentityKey, ThirtyTwoRawBytesAreTheKeyItself) {
  const std::string raw = "0123456789abcdef0123456789abcde\n";  // ends in a byte of white space
  const auto key = parse_identity_key(raw);
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(std::string(key->bytes.begin(), key->bytes.end()), raw);
}

TEST(IdentityKey, HexadecimalDigitsMayHaveWhiteSpaceAround) {
  const std::string digits(64, 'A');
  const auto key = parse_identity_key(" " + digits + "\r\n");
  ASSERT_TRUE(key.ok());
  for (const auto byte : key->bytes) EXPECT_EQ(byte, 0xAA);
}

TEST(IdentityKey, OtherLengthsAreRefusedWithBothFormsNamed) {
  for (const std::string& content :
       {std::string(), std::string(31, 'x'), std::string(33, 'x'), std::string(63, 'a'),
        std::string(66, 'a'), std::string(64, 'g'), std::string(1000, ' ')}) {
    const auto key = parse_identity_key(content);
    ASSERT_FALSE(key.ok()) << content;
    EXPECT_NE(key.error().message.find("32 raw bytes"), std::string::npos);
    EXPECT_NE(key.error().message.find("64 hexadecimal digits"), std::string::npos);
  }
}

TEST(IdentityKey, TheDevelopmentKeyIsTheDocumentedText) {
  const auto key = development_identity_key();
  EXPECT_EQ(std::string(key.bytes.begin(), key.bytes.end()), "sightline-development-key-000001");
}

}  // namespace
}  // namespace sightline::contract
