// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/selection_settings.h"

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

TEST(SelectionSettings, WhatOtherMachinesReachNeedsTokens) {
  SelectionSettings settings;
  EXPECT_TRUE(check_selection(settings).ok());
  for (const char* host : {"localhost", "127.0.0.2", "::1"}) {
    settings.host = host;
    EXPECT_TRUE(check_selection(settings).ok()) << host;
  }
  settings.host = "0.0.0.0";
  const auto refused = check_selection(settings);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--selection-token-file"), std::string::npos);
  settings.token_file = "tokens";
  EXPECT_TRUE(check_selection(settings).ok());
}

}  // namespace
}  // namespace sightline::contract
