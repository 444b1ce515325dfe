// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/api_connection.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sightline::config {
namespace {

TEST(InCluster, AddressesOfBothKindsMakeAUrl) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("in_cluster." + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "namespace") << "system";
  const auto four = in_cluster("10.0.0.1", "443", directory.string());
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(four->cluster.server, "https://10.0.0.1:443");
  EXPECT_EQ(four->name_space, "system");
  EXPECT_EQ(four->user.token_file, (directory / "token").string());
  const auto six = in_cluster("fd00::1", "6443", directory.string());
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->cluster.server, "https://[fd00::1]:6443");
  std::filesystem::remove_all(directory);
}

TEST(InCluster, OutsideOfOneIsAnErrorThatSaysSo) {
  EXPECT_NE(in_cluster("", "443", "/nowhere").error().message.find("not in a cluster"),
            std::string::npos);
  EXPECT_FALSE(in_cluster("10.0.0.1", "70000", "/nowhere").ok());
  EXPECT_FALSE(in_cluster("10.0.0.1", "443", "/nowhere").ok());
}

}  // namespace
}  // namespace sightline::config
