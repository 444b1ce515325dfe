// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/admin_port/target.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::admin_port {
namespace {

TEST(Target, DecodesEscapesAndNothingElse) {
  EXPECT_EQ(decode_escapes("/v1/%65cho+%2F%00").value(), std::string("/v1/echo+/\0", 11));
  EXPECT_EQ(decode_escapes("").value(), "");
}

TEST(Target, RefusesEscapesThatAreNoBytes) {
  for (const char* text : {"%", "a%4", "%zz", "%-1", "%+1", "% 1", "%4g"}) {
    EXPECT_FALSE(decode_escapes(text).ok()) << text;
    EXPECT_FALSE(decode_query(text).ok()) << text;
  }
}

TEST(Target, KeepsAllValuesOfAName) {
  const auto query = decode_query("a=1&b&a=2%26&&=x&c=d=e").value();
  const Query want{{"a", {"1", "2&"}}, {"b", {""}}, {"", {"", "x"}}, {"c", {"d=e"}}};
  EXPECT_EQ(query, want);
}

}  // namespace
}  // namespace sightline::admin_port
