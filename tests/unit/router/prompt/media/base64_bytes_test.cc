// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/base64_bytes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/bytes.h"
#include "common/base/rng.h"

namespace sightline::media {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Decodes a text into a buffer of exactly the upper bound. Returns "<error>: message" for errors.
std::string decoded(std::string_view text) {
  std::vector<std::uint8_t> out(base64_bytes_max(text.size()));
  const auto size = decode_base64(text, out);
  if (!size.ok()) return "<error>: " + size.error().message;
  return {out.begin(), out.begin() + static_cast<long>(*size)};
}

bool is_refused(std::string_view text) { return decoded(text).starts_with("<error>"); }

// Encodes bit by bit. It shares no code with the decoder.
std::string encoded(const std::string& bytes) {
  std::string text;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 6) {
    unsigned digit = 0;
    for (std::size_t i = bit; i < bit + 6; ++i) {
      const unsigned byte = i / 8 < bytes.size() ? static_cast<std::uint8_t>(bytes[i / 8]) : 0U;
      digit = digit << 1U | (byte >> (7 - i % 8) & 1U);
    }
    text.push_back(kAlphabet[digit]);
  }
  while (text.size() % 4 != 0) text.push_back('=');
  return text;
}

TEST(Base64, DecodesTheVectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"Zg==", "f"},
                                                         {"Zm8=", "fo"},
                                                         {"Zm9v", "foo"},
                                                         {"Zm9vYg==", "foob"},
                                                         {"Zm9vYmE=", "fooba"},
                                                         {"Zm9vYmFy", "foobar"}};
  for (const auto& [text, want] : vectors) EXPECT_EQ(decoded(text), want);
}

TEST(Base64, EveryLengthAndEveryByteComesBack) {
  Rng rng(3);
  for (std::size_t length = 0; length < 300; ++length) {
    std::string bytes;
    for (std::size_t i = 0; i < length; ++i) bytes.push_back(static_cast<char>(rng.below(256)));
    EXPECT_EQ(decoded(encoded(bytes)), bytes) << length;
  }
}

// The results of pybase64 1.5.1 with validate=True.
TEST(Base64, RefusesTheSameTextsAsTheEngine) {
  for (const char* text :
       {"A",        "AA",     "AAA",      "AA=",   "A===",     "AAAA=",    "AAAA==",
        "AAAA====", "AAAAAA", "AB=A",     "=AAA",  "AA==AAAA", "AA==AA==", "AAAA\n",
        "AA A",     "AA-_",   "AAAAA===", " AAAA", "@@@@",     "AAAAAAA@", "AAA@",
        "AA=@",     "====",   "=",        "==="}) {
    EXPECT_TRUE(is_refused(text)) << text;
  }
}

TEST(Base64, UnusedBitsOfTheLastDigitMayBeSet) {
  EXPECT_EQ(to_hex(bytes_of(decoded("AR=="))), "01");
  EXPECT_EQ(to_hex(bytes_of(decoded("AAF="))), "0001");
}

TEST(Base64, EveryForeignByteIsFoundAndNamed) {
  const std::string good = encoded(std::string(120, 'x'));
  ASSERT_FALSE(is_refused(good));
  for (std::size_t position = 0; position < good.size(); ++position) {
    for (int byte = 0; byte < 256; ++byte) {
      if (kAlphabet.find(static_cast<char>(byte)) != std::string_view::npos) continue;
      std::string bad = good;
      bad[position] = static_cast<char>(byte);
      if (byte == '=' && position + 1 == good.size()) continue;  // padding
      const std::string outcome = decoded(bad);
      ASSERT_TRUE(outcome.ends_with("at position " + std::to_string(position)))
          << position << " " << byte << " " << outcome;
    }
  }
}

}  // namespace
}  // namespace sightline::media
