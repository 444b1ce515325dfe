// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/api_keys.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::fleet {
namespace {

using std::chrono::milliseconds;

TEST(ApiKey, OneLineIsAKeyWithoutItsEnd) {
  for (const char* content : {"sk-1", "sk-1\n", "sk-1\r\n"}) {
    const auto key = parse_api_key(content);
    ASSERT_TRUE(key.ok());
    EXPECT_EQ(*key, "sk-1");
  }
  EXPECT_TRUE(parse_api_key(std::string(kApiKeyBytesMax, 'x') + "\r\n").ok());
}

TEST(ApiKey, RefusesAnInvalidKeyWithoutShowingIt) {
  for (const std::string& content :
       {std::string("a b"), std::string("a\nb"), std::string("a\r\nX-Evil: 1"),
        std::string("a\n\n"), std::string("a\0b", 3), std::string("\xc3\xa9"), std::string("a\x7f"),
        std::string(" a"), std::string(), std::string("\n"),
        std::string(kApiKeyBytesMax + 1, 'x')}) {
    const auto key = parse_api_key(content);
    ASSERT_FALSE(key.ok()) << content;
    EXPECT_EQ(key.error().message.find("Evil"), std::string::npos);
  }
}

class ApiKeysTest : public testing::Test {
 protected:
  ApiKeysTest() : path_(testing::TempDir() + "sl-key-" + std::to_string(::getpid())) {
    spec_.api_key_file = path_;
    std::filesystem::remove(path_);
  }
  ~ApiKeysTest() override { std::filesystem::remove(path_); }

  void write(const std::string& content) const { std::ofstream(path_) << content; }

  const std::string path_;
  contract::WorkerSpec spec_;
  test::ManualClock clock_;
  ApiKeys keys_;
};

TEST_F(ApiKeysTest, AWorkerWithoutAFileHasNoKey) {
  const ApiKeys::KeyState& key = keys_.of({}, clock_.now());
  EXPECT_EQ(key.key, "");
  EXPECT_EQ(key.problem, "");
}

TEST_F(ApiKeysTest, ReadsARefusedKeyAgainWithPauses) {
  write("one\n");
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "one");
  write("two\n");
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "one");
  keys_.refused(spec_, clock_.now());
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "two");
  write("three\n");
  clock_.advance(ApiKeys::kRereadAfter - milliseconds(1));
  keys_.refused(spec_, clock_.now());
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "two");
  clock_.advance(milliseconds(1));
  keys_.refused(spec_, clock_.now());
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "three");
}

TEST_F(ApiKeysTest, AFileThatCannotBeUsedIsLookedForAgain) {
  EXPECT_EQ(keys_.of(spec_, clock_.now()).problem,
            "api_key_file=" + path_ + " cannot be read: No such file or directory");
  write("key");
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "");
  clock_.advance(ApiKeys::kRereadAfter);
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "key");
  EXPECT_EQ(keys_.of(spec_, clock_.now()).problem, "");
}

TEST_F(ApiKeysTest, RefusesAPipeAndADirectory) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(keys_.of(spec_, clock_.now()).problem,
            "api_key_file=" + path_ + " is not a regular file");
  spec_.api_key_file = testing::TempDir();
  EXPECT_NE(keys_.of(spec_, clock_.now()).problem.find("is not a regular file"), std::string::npos);
}

TEST_F(ApiKeysTest, WhatNoWorkerNamesIsForgotten) {
  write("one");
  (void)keys_.of(spec_, clock_.now());
  keys_.keep({});
  write("two");
  EXPECT_EQ(keys_.of(spec_, clock_.now()).key, "two");
}

}  // namespace
}  // namespace sightline::fleet
