// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/header_rules.h"

#include <gtest/gtest.h>

namespace sightline::http {
namespace {

TEST(HeaderRules, TakeHostsThatUrlsMayHave) {
  for (const char* host :
       {"", "x", "example.com", "example.com:8000", "a_b-c.d~e:1", "127.0.0.1:80", "[::1]",
        "[fe80::1%25eth0]:8000", "[::ffff:10.0.0.1]:65535", "h:", "x%20y"}) {
    EXPECT_TRUE(is_host_value(host)) << host;
  }
}

TEST(HeaderRules, RefuseWhatOtherReadersMayTakeForAnotherHost) {
  for (const char* host :
       {"a b",   "a b/..", "u:p@evil", "u:p@evil#x", "u@h", "a/b",  "a\\b", "a?b",    "a#b",
        "a,\tb", "x:80x",  "x:-1",     "x:123456",   "::1", "[::1", "[]",   "[::1]x", "[::1]:x",
        "[a b]", "h:1:2",  "\xc3\xa9", "a\"b",       "<x>", "{x}",  "a|b",  "a^b",    "a`b"}) {
    EXPECT_FALSE(is_host_value(host)) << host;
  }
}

TEST(HeaderRules, FindALineThatGoesOnWithTheOneBefore) {
  EXPECT_TRUE(has_folded_line("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"));
  EXPECT_TRUE(has_folded_line("GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n"));
  EXPECT_TRUE(has_folded_line("A: b\r\n \r\n\r\n"));
  EXPECT_FALSE(has_folded_line("GET / HTTP/1.1\r\nA: b \r\nC:  d\t\r\n\r\n"));
  EXPECT_FALSE(has_folded_line(""));
}

}  // namespace
}  // namespace sightline::http
