// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace sightline {
namespace {

std::string printable(std::string_view text) {
  std::string out;
  append_printable(out, text);
  return out;
}

TEST(Printable, TextInAnyScriptStaysAsItIs) {
  for (const std::string text : {"plain ~", "größe", "中文", "\U0001F600", ""}) {
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatTerminalsAndReadersActOnIsEscaped) {
  struct Case {
    std::string_view text;
    std::string want;
  };
  const Case cases[] = {{"a\nb\tc\r", "a\\nb\\tc\\x0d"},
                        {"\x1b[31m", "\\x1b[31m"},
                        {"\x7f", "\\x7f"},
                        {"\u009b31m", "\\u009b31m"},
                        {"\u202eid", "\\u202eid"},
                        {"\u2028", "\\u2028"},
                        {"\u200d\ufeff", "\\u200d\\ufeff"},
                        {"\U000e0041", "\\ue0041"},
                        {"\xff\xfeid", "\\xff\\xfeid"},
                        {"\xc3", "\\xc3"},
                        {"\xe2\x82", "\\xe2\\x82"},
                        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                        {std::string_view("\0", 1), "\\x00"}};
  for (const Case& c : cases) {
    EXPECT_FALSE(is_printable(c.text)) << c.want;
    EXPECT_EQ(printable(c.text), c.want);
  }
}

}  // namespace
}  // namespace sightline
