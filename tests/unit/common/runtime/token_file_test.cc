// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/token_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/runtime/small_file.h"

#include "tests/fakes/manual_clock.h"

namespace sightline::runtime {
namespace {

const std::string kOne = "first-token-of-all";
const std::string kTwo = "second-token-of-all";

using Tokens = std::vector<std::string>;

TEST(Tokens, EachLineIsOneWithoutItsEnd) {
  for (const std::string& content :
       {kOne + "\n" + kTwo, kOne + "\r\n" + kTwo + "\r\n", "\n" + kOne + "\n\n" + kTwo + "\n"}) {
    const auto tokens = parse_tokens(content);
    ASSERT_TRUE(tokens.ok()) << content;
    EXPECT_EQ(*tokens, (Tokens{kOne, kTwo}));
  }
  EXPECT_TRUE(parse_tokens(std::string(kTokenBytesMin, 'x')).ok());
  EXPECT_TRUE(parse_tokens(std::string(kTokenBytesMax, 'x')).ok());
}

TEST(Tokens, RefusesAnInvalidTokenByLineWithoutShowingIt) {
  const struct {
    std::string content;
    std::string want;
  } cases[] = {
      {"", "holds no token"},
      {"\n\r\n", "holds no token"},
      {kOne + "\nshort-secret", "line 2: a token must have 16 to 512 characters"},
      {std::string(kTokenBytesMax + 1, 's'), "line 1: a token must have 16 to 512 characters"},
      {"with blanks secret!", "line 1: a token must consist of visible ASCII"},
      {std::string("with-zero\0secret!!", 18), "line 1: a token must consist of visible ASCII"},
      {"with-\xc3\xa9-secret!!!!", "line 1: a token must consist of visible ASCII"},
  };
  for (const auto& [content, want] : cases) {
    const auto tokens = parse_tokens(content);
    ASSERT_FALSE(tokens.ok()) << content;
    EXPECT_NE(tokens.error().message.find(want), std::string::npos) << tokens.error().message;
    EXPECT_EQ(tokens.error().message.find("secret"), std::string::npos);
  }
}

TEST(Tokens, AFileHoldsSixteenAtMost) {
  std::string content;
  for (std::size_t i = 0; i < kTokensMax; ++i) content += kOne + "\n";
  EXPECT_TRUE(parse_tokens(content).ok());
  const auto more = parse_tokens(content + kOne);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().message, "holds more than 16 tokens");
}

TEST(Tokens, AcceptsBearerInAnyCaseBeforeAToken) {
  const Tokens tokens{kOne, kTwo};
  EXPECT_TRUE(holds_token("Bearer " + kOne, tokens));
  EXPECT_TRUE(holds_token("bEARER " + kTwo, tokens));
  for (const std::string& other :
       {std::string(), std::string("Bearer "), std::string("Bearer"), kOne, "Basic " + kOne,
        "Bearer  " + kOne, "Bearer " + kOne + " ", "Bearer " + kOne + kOne, "Bearer " + kOne + "x",
        "Bearer " + kOne.substr(1), "Bearer " + kOne.substr(0, kOne.size() - 1),
        "Bearer F" + kOne.substr(1)}) {
    EXPECT_FALSE(holds_token(other, tokens)) << other;
  }
  EXPECT_FALSE(holds_token("Bearer " + kOne, {}));
  EXPECT_FALSE(holds_token("Bearer ", {}));
}

class TokenFileTest : public testing::Test {
 protected:
  TokenFileTest() : path_(testing::TempDir() + "sl-tokens-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~TokenFileTest() override { std::filesystem::remove_all(path_); }

  void write(const std::string& content) const { std::ofstream(path_) << content; }
  [[nodiscard]] std::unique_ptr<TokenFile> opened() const {
    auto file = TokenFile::open(path_, clock_);
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }

  const std::string path_;
  test::ManualClock clock_;
};

TEST_F(TokenFileTest, AdmitsThoseWhoNameAToken) {
  write(kOne + "\n" + kTwo + "\n");
  const auto file = opened();
  EXPECT_TRUE(file->admits("Bearer " + kOne));
  EXPECT_TRUE(file->admits("Bearer " + kTwo));
  EXPECT_FALSE(file->admits(""));
}

TEST_F(TokenFileTest, CannotBeOpenedWithoutATokenAndSaysWhy) {
  const auto why = [this] {
    const auto file = TokenFile::open(path_, clock_);
    return file.ok() ? std::string("opened") : file.error().message;
  };
  EXPECT_EQ(why(), path_ + " cannot be read: No such file or directory");
  write("");
  EXPECT_EQ(why(), path_ + " holds no token");
  write(std::string(kTokenFileBytesMax + 1, 'x'));
  EXPECT_EQ(why(), path_ + " is longer than 8224 bytes");
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(why(), path_ + " is not a regular file");
}

TEST_F(TokenFileTest, AdmitsByWhatTheFileSaysASecondLaterAtMost) {
  write(kOne);
  const auto file = opened();
  write(kTwo);
  clock_.advance(TokenFile::kReadAfter - std::chrono::nanoseconds(1));
  EXPECT_TRUE(file->admits("Bearer " + kOne));
  clock_.advance(std::chrono::nanoseconds(1));
  EXPECT_FALSE(file->admits("Bearer " + kOne));
  EXPECT_TRUE(file->admits("Bearer " + kTwo));
}

TEST_F(TokenFileTest, UnusableFileAdmitsNoCaller) {
  write(kOne);
  const auto file = opened();
  std::filesystem::remove(path_);
  EXPECT_TRUE(file->admits("Bearer " + kOne));
  clock_.advance(TokenFile::kReadAfter);
  EXPECT_FALSE(file->admits("Bearer " + kOne));
  write("short");
  clock_.advance(TokenFile::kReadAfter);
  EXPECT_FALSE(file->admits("Bearer short"));
  write(kOne);
  clock_.advance(TokenFile::kReadAfter);
  EXPECT_TRUE(file->admits("Bearer " + kOne));
}

TEST_F(TokenFileTest, ReadsASmallFileUpToItsLimit) {
  write(std::string(5000, 'a'));
  const auto whole = read_small_file(path_, 5000);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, std::string(5000, 'a'));
  EXPECT_FALSE(read_small_file(path_, 4999).ok());
  EXPECT_EQ(read_small_file(testing::TempDir(), 10).error().message, "is not a regular file");
  write("");
  EXPECT_EQ(*read_small_file(path_, 0), "");
}

}  // namespace
}  // namespace sightline::runtime
