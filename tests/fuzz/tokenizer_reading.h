// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>
#include <vector>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "common/base/bytes.h"
#include "common/base/check.h"

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/unit/router/prompt/tokenizer/naive_tokenizer.h"

namespace sightline::fuzz {

// The limit is low because the naive tokenizer is quadratic.
inline constexpr std::size_t kNaiveBytesMax = 600;

// The libraries of the naive tokenizer agree with the router's on the characters of Unicode 9.0 and
// before, except U+180E. Only PCRE2 treats that one as white space.
inline bool is_old_text(std::string_view text) {
  constexpr std::uint8_t kVersionMax = 9;
  const auto size = static_cast<std::int32_t>(text.size());
  for (std::int32_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), at, size, c);
    UVersionInfo age;
    u_charAge(c, age);
    if (age[0] == 0 || age[0] > kVersionMax || c == 0x180E) return false;
  }
  return true;
}

inline bool is_ascii(std::string_view text) {
  return text.find_first_not_of(
             "\t\n\r !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") == text.npos;
}

// Checks one text: valid ids, a decoded text in UTF-8, and the ids of the naive tokenizer.
inline void check_encoding(const tokenizer::Tokenizer& tokenizer,
                           const tokenizer::NaiveTokenizer& naive, std::string_view text) {
  std::vector<TokenId> ids = {7};
  const auto done = tokenizer.encode(text, ids);
  SL_CHECK(done.ok() == is_utf8(text));
  SL_CHECK(ids.front() == 7);
  if (!done.ok()) {
    SL_CHECK(ids.size() == 1);
    return;
  }
  ids.erase(ids.begin());
  SL_CHECK(ids.size() <= 4 * text.size());  // NFC makes text longer in rare cases
  for (const TokenId id : ids) SL_CHECK(id < tokenizer.vocabulary_size());
  const auto decoded = tokenizer.decode(ids);
  SL_CHECK(is_utf8(decoded));
  if (is_ascii(text)) SL_CHECK(decoded == text);
  if (text.size() <= kNaiveBytesMax && is_old_text(text)) SL_CHECK(ids == naive.encode(text));
}

}  // namespace sightline::fuzz
