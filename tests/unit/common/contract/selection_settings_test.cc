// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/selection_settings.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

std::string refusal(Roles roles, const SelectionSettings& settings) {
  const auto checked = check_selection(roles, settings);
  return checked.ok() ? "" : checked.error().message;
}

TEST(SelectionSettings, WhatOtherMachinesReachNeedsTokens) {
  SelectionSettings settings;
  for (const char* host : {"localhost", "127.0.0.2", "::1"}) {
    settings.host = host;
    EXPECT_EQ(refusal(Roles::Both, settings), "") << host;
  }
  settings.host = "0.0.0.0";
  EXPECT_NE(refusal(Roles::Router, settings).find("--selection-token-file"), std::string::npos);
  settings.token_file = "tokens";
  EXPECT_EQ(refusal(Roles::Router, settings), "");
}

TEST(SelectionSettings, OnlyAFrontendAloneNeedsAndHasRouters) {
  SelectionSettings settings;
  EXPECT_NE(refusal(Roles::Frontend, settings).find("--routers"), std::string::npos);
  settings.routers = "http://a:1,http://b";
  EXPECT_EQ(refusal(Roles::Frontend, settings), "");
  EXPECT_NE(refusal(Roles::Both, settings).find("--roles frontend"), std::string::npos);
}

TEST(SelectionSettings, RoutersAreUrlsWithCommasBetween) {
  const auto read = router_addresses("http://10.0.0.7:81,http://routers/,http://[::1]:5");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, (std::vector<RouterAddress>{{"10.0.0.7", 81}, {"routers", 8092}, {"::1", 5}}));
  for (const char* wrong :
       {"", "routers:8092", "https://a", "http://", "http://a:0", "http://a:x", "http://a:65536",
        "http://a/b", "http://a,", "http://u@a", "http://[::1"}) {
    EXPECT_FALSE(router_addresses(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace sightline::contract
