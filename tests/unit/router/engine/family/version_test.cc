// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/version.h"

#include <gtest/gtest.h>

namespace sightline::family {
namespace {

TEST(Version, ReleasesAndBuildsOfThemAreRead) {
  EXPECT_EQ(parse_version("0.17.1"), (Version{"0.17.1", 0, 17, 1, true}));
  EXPECT_EQ(parse_version("0.32.0+cpu"), (Version{"0.32.0+cpu", 0, 32, 0, true}));
  EXPECT_EQ(parse_version("1.2.3.post1"), (Version{"1.2.3.post1", 1, 2, 3, true}));
}

TEST(Version, WhatIsBuiltBetweenReleasesIsNoRelease) {
  EXPECT_EQ(parse_version("0.23.1.dev5+g123"), (Version{"0.23.1.dev5+g123", 0, 23, 1, false}));
  EXPECT_EQ(parse_version("0.24.0rc1"), (Version{"0.24.0rc1", 0, 24, 0, false}));
  EXPECT_EQ(parse_version("0.24.0rc1.dev3+gab.d20261122"),
            (Version{"0.24.0rc1.dev3+gab.d20261122", 0, 24, 0, false}));
}

TEST(Version, AnythingElseIsNotAVersion) {
  for (const std::string_view text : {"",
                                      ".",
                                      "0",
                                      "0.17",
                                      "0.17.",
                                      "v0.17.1",
                                      " 0.17.1",
                                      "0.17.1 ",
                                      "0.17.1\n",
                                      "0.17.x",
                                      "-1.0.0",
                                      "0.17.1rc",
                                      "0.17.1.dev",
                                      "0.17.1+",
                                      "0.17.1+a b",
                                      "0.17.1+\"",
                                      "0.17.1<b>",
                                      "0.17.99999",
                                      "99999999999999999999.0.0",
                                      "0.17.1.2",
                                      "dev"}) {
    EXPECT_EQ(parse_version(text), std::nullopt) << text;
  }
  EXPECT_TRUE(parse_version("0.17.1+" + std::string(kVersionBytesMax - 7, 'a')));
  EXPECT_FALSE(parse_version("0.17.1+" + std::string(kVersionBytesMax - 6, 'a')));
  EXPECT_FALSE(parse_version(std::string_view("0.17.1\0", 7)));
}

}  // namespace
}  // namespace sightline::family
