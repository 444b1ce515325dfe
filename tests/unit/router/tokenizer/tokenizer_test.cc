// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/tokenizer/tokenizer.h"

#include <sstream>

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "tests/unit/router/tokenizer/fixture.h"
#include "tests/unit/router/tokenizer/naive_tokenizer.h"
#include "tests/unit/router/tokenizer/random_text.h"

namespace sightline::tokenizer {
namespace {

std::string sha256_le32(const std::vector<TokenId>& ids) {
  Bytes bytes;
  for (const TokenId id : ids) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(id >> shift));
    }
  }
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  return to_hex(digest);
}

std::vector<json::Document> read_lines(std::string_view name) {
  std::vector<json::Document> rows;
  std::istringstream lines(read_test_file(name));
  for (std::string line; std::getline(lines, line);) {
    auto row = json::Document::parse(line);
    EXPECT_TRUE(row.ok()) << line.substr(0, 80);
    rows.push_back(std::move(row).value());
  }
  return rows;
}

std::vector<TokenId> ids_in(json::Value list) {
  std::vector<TokenId> ids;
  for (const json::Value id : list) ids.push_back(static_cast<TokenId>(*id.integer()));
  return ids;
}

class TokenizerGoldens : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGoldens, AllIdsAreThoseOfTheReferenceLibrary) {
  const Tokenizer& tokenizer = test_tokenizer(GetParam());
  const auto texts = read_lines("texts.jsonl");
  const auto wants = read_lines(std::string(GetParam()) + ".jsonl");
  ASSERT_EQ(texts.size(), 508U);
  ASSERT_EQ(wants.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const json::Value want = wants[i].root();
    ASSERT_EQ(texts[i].root().find("id")->string(), want.find("id")->string());
    SCOPED_TRACE(*want.find("id")->string());
    const std::string_view text = *texts[i].root().find("text")->string();
    const std::vector<TokenId> ids = ids_of(tokenizer, text);
    EXPECT_EQ(static_cast<std::int64_t>(ids.size()), want.find("n")->integer());
    EXPECT_EQ(sha256_le32(ids), want.find("sha")->string());
    const auto listed = want.find("ids");
    EXPECT_EQ(listed ? ids_in(*listed) : ids, ids);
  }
}

TEST_P(TokenizerGoldens, RandomTextsHaveTheIdsOfTheNaiveTokenizer) {
  const Tokenizer& tokenizer = test_tokenizer(GetParam());
  const NaiveTokenizer naive(read_test_file(std::string(GetParam()) + ".tokenizer.json"));
  Rng rng(4);
  for (int round = 0; round < 10'000; ++round) {
    const std::string text = random_text(rng, 16);
    ASSERT_EQ(ids_of(tokenizer, text), naive.encode(text)) << '"' << text << '"';
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerGoldens, testing::Values("qwen3", "qwen2_5"));

}  // namespace
}  // namespace sightline::tokenizer
