// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/process_identity.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace sightline::process {
namespace {

TEST(ProcessName, IsTheConfiguredOneOrHostAndPort) {
  EXPECT_EQ(process_name("r0", 9090), "r0");
  const std::string own = process_name("", 9090);
  EXPECT_TRUE(own.ends_with(":9090")) << own;
  EXPECT_GT(own.size(), std::string_view(":9090").size());
  EXPECT_NE(process_name("", 0).find(":pid"), std::string::npos)
      << "ports of processes may be equal";
}

TEST(Identity, ReadsTheFileOrNamesFlagAndFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sightline-identity-test";
  std::ofstream(path) << std::string(64, 'a') << "\n";
  const auto key = load_identity({path.string()});
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->bytes[31], 0xaa);
  std::ofstream(path) << "short";
  const auto wrong = load_identity({path.string()});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("--identity-key-file " + path.string()), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_FALSE(load_identity({path.string()}).ok());
}

TEST(Identity, IsReadFromRegularFilesAlone) {
  const auto pipe = std::filesystem::path(testing::TempDir()) / "sightline-identity-pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe.string(), std::string("/dev/zero")}) {
    const auto key = load_identity({path});
    ASSERT_FALSE(key.ok()) << path;
    EXPECT_EQ(key.error().message, "--identity-key-file " + path + " is not a regular file");
  }
  std::filesystem::remove(pipe);
}

}  // namespace
}  // namespace sightline::process
