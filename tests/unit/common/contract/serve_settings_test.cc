// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/serve_settings.h"

#include <map>

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

TEST(ServeSettings, FlagsAndPathsAreUnique) {
  ServeSettings settings;
  const SettingTable table = serve_table(settings);
  std::map<std::string, int> seen;
  for (const Setting& row : table.rows()) {
    EXPECT_EQ(++seen["--" + row.text.flag], 1) << row.text.flag;
    EXPECT_EQ(++seen[row.text.path], 1) << row.text.path;
  }
}

TEST(ServeSettings, EveryDefaultIsAllowedByItsOwnRange) {
  ServeSettings settings;
  SettingTable table = serve_table(settings);
  for (Setting& row : table.rows()) {
    if (row.shape != SettingShape::Scalar && row.shape != SettingShape::Switch) continue;
    EXPECT_TRUE(row.add({row.default_text, {}}).ok()) << row.text.path;
    EXPECT_EQ(row.show(), std::vector{row.default_text}) << row.text.path;
  }
}

TEST(ServeSettings, AModelAndAWayToWorkersAreRequired) {
  ServeSettings settings;
  EXPECT_NE(check_serve_settings(settings, true).error().message.find("--model-path"),
            std::string::npos);
  settings.model.path = "/m";
  EXPECT_TRUE(check_serve_settings(settings, true).ok());
  EXPECT_NE(check_serve_settings(settings, false).error().message.find("--worker"),
            std::string::npos);
  settings.workers.push_back(*parse_worker("url=http://a:1"));
  EXPECT_TRUE(check_serve_settings(settings, false).ok());
  settings.server.total_body_bytes_max = settings.server.body_bytes_max - 1;
  EXPECT_NE(check_serve_settings(settings, false).error().message.find("--total-body-bytes-max"),
            std::string::npos);
}

}  // namespace
}  // namespace sightline::contract
