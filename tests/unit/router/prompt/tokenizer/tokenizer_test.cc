// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/tokenizer.h"

#include <array>
#include <sstream>

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "router/prompt/tokenizer/unicode.h"
#include "tests/support/rounds.h"
#include "tests/unit/router/prompt/tokenizer/fixture.h"
#include "tests/unit/router/prompt/tokenizer/naive_tokenizer.h"
#include "tests/unit/router/prompt/tokenizer/random_text.h"

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

TEST_P(TokenizerGoldens, GivesTheIdsOfTheReferenceLibrary) {
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
  for (int round = 0; round < test::rounds(10'000); ++round) {
    const std::string text = random_text(rng, 16);
    ASSERT_EQ(ids_of(tokenizer, text), naive.encode(text)) << '"' << text << '"';
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerGoldens, testing::Values("qwen3", "qwen2_5"));

TEST(Tokenizer, KnowsAddedAndVocabularyTokensByContent) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  EXPECT_EQ(qwen3.token_id("<|image_pad|>"), 151'655U);
  EXPECT_EQ(qwen3.token_id("<|vision_start|>"), 151'652U);
  EXPECT_EQ(qwen3.token_id("!"), 0U);
  EXPECT_EQ(qwen3.token_id(" the"), 279U);
  EXPECT_EQ(qwen3.token_id("<|no such token|>"), std::nullopt);
  EXPECT_EQ(qwen3.vocabulary_size(), 151'669U);
  EXPECT_EQ(test_tokenizer("qwen2_5").vocabulary_size(), 151'665U);
}

TEST(Tokenizer, MongolianVowelSeparatorIsNoWhiteSpace) {
  // The ids of Hugging Face tokenizers 0.23. PCRE2, which the naive tokenizer uses, counts it as a
  // blank.
  const std::string_view text("\u180E<t\x03ol_call\0;>)", 17);
  EXPECT_EQ(ids_of(test_tokenizer("qwen3"), text),
            (std::vector<TokenId>{123970, 236, 27, 83, 191, 337, 13429, 188, 26, 9231}));
}

TEST(Tokenizer, DecodesToTheTextThatWasEncoded) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    if (!normalize_nfc(random_text(rng, 40), text)) continue;
    EXPECT_EQ(qwen3.decode(ids_of(qwen3, text)), text);
  }
  EXPECT_EQ(qwen3.decode({}), "");
  EXPECT_EQ(qwen3.decode(std::array<TokenId, 3>{0, 4'000'000'000, 151'645}), "!<|im_end|>");
}

TEST(Tokenizer, AppendsAndLeavesIdsAloneOnError) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  std::vector<TokenId> ids = {1, 2};
  ASSERT_TRUE(qwen3.encode("!", ids).ok());
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 0}));
  for (const std::string_view bad : {"a\xFF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80"}) {
    const auto done = qwen3.encode(bad, ids);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(ids.size(), 3U);
  }
}

TEST(Tokenizer, RefusesAnInvalidFile) {
  EXPECT_EQ(Tokenizer::create("").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(Tokenizer::create("{}").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(Tokenizer::create("[1,2]").error().code, ErrorCode::InvalidArgument);
}

// A text of several pieces. Some change under NFC, and some have no safe cut.
TEST(Tokenizer, LongTextsHaveTheIdsOfTheNaiveTokenizer) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  const NaiveTokenizer naive(read_test_file("qwen3.tokenizer.json"));
  Rng rng(6);
  for (int round = 0; round < 4; ++round) {
    std::string text;
    while (text.size() < 60'000)
      text += random_text(rng, 30) + (rng.below(3) == 0 ? "\nLine" : " ");
    EXPECT_EQ(ids_of(qwen3, text), naive.encode(text));
  }
}

std::string long_random_text(Rng& rng, std::size_t size) {
  std::string text;
  while (text.size() < size) text += random_text(rng, 30);
  return text;
}

TEST(Tokenizer, PiecesAreIndependentOfTheirSurroundings) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  Rng rng(8);
  for (int round = 0; round < 100; ++round) {
    const std::string text = long_random_text(rng, rng.below(40'000));
    auto pieces = qwen3.cut(text);
    ASSERT_TRUE(pieces.ok());
    std::string joined;
    std::vector<TokenId> ids;
    while (const auto piece = pieces->next()) {
      ASSERT_FALSE(piece->text.empty());
      joined += piece->text;
      const std::vector<TokenId> alone = ids_of(qwen3, std::string(piece->text));
      EXPECT_EQ(piece->added ? std::vector{*piece->added} : alone, alone);
      ids.insert(ids.end(), alone.begin(), alone.end());
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(ids, ids_of(qwen3, text));
  }
}

TEST(Tokenizer, AppendingChangesOnlyTheLastPiece) {
  const Tokenizer& qwen3 = test_tokenizer("qwen3");
  Rng rng(9);
  for (int round = 0; round < 100; ++round) {
    const std::string longer = long_random_text(rng, 30'000);
    std::size_t size = rng.below(30'000);
    while (!is_utf8(longer.substr(0, size))) --size;
    const std::string text = longer.substr(0, size);
    auto pieces = qwen3.cut(text);
    auto pieces_of_longer = qwen3.cut(longer);
    while (const auto piece = pieces->next()) {
      const auto same = pieces_of_longer->next();
      ASSERT_TRUE(same);
      if (piece->text.data() + piece->text.size() == text.data() + text.size()) break;
      ASSERT_EQ(same->text, piece->text);
      ASSERT_EQ(same->added, piece->added);
    }
  }
}

TEST(Tokenizer, TextWithoutAPlaceToCutIsOnePiece) {
  const std::string text(3 * Pieces::kBytes, '=');
  auto pieces = test_tokenizer("qwen3").cut(text);
  EXPECT_EQ(pieces->next()->text.size(), text.size());
  EXPECT_FALSE(pieces->next());
}

// The word cache of a thread holds the words of one tokenizer.
TEST(Tokenizer, TwoTokenizersOnOneThreadKeepTheirWords) {
  const auto small = Tokenizer::create(small_model_file());
  ASSERT_TRUE(small.ok()) << small.error().message;
  for (const std::string word : {"cabbx", "cabbages and kings and cabbages"}) {
    std::vector<TokenId> want;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool pair = word.compare(i, 2, "ab") == 0;
      want.push_back(pair ? 256 : static_cast<TokenId>(word[i]));
      i += pair ? 1 : 0;
    }
    const auto of_qwen3 = ids_of(test_tokenizer("qwen3"), word);
    EXPECT_EQ(ids_of(**small, word), want);
    EXPECT_EQ(ids_of(test_tokenizer("qwen3"), word), of_qwen3);
    EXPECT_EQ(ids_of(**small, word), want);
  }
}

TEST(Tokenizer, TheLowerBoundOfIdsHoldsForEveryPiece) {
  Rng rng(21);
  for (const char* family : {"qwen3", "qwen2_5"}) {
    const Tokenizer& tokenizer = test_tokenizer(family);
    for (int i = 0; i < 300; ++i) {
      const std::string text = random_text(rng, 2000);
      auto pieces = tokenizer.cut(text);
      ASSERT_TRUE(pieces.ok());
      while (const auto piece = pieces->next()) {
        std::vector<TokenId> ids;
        tokenizer.encode_piece(*piece, ids);
        ASSERT_LE(tokenizer.ids_min(*piece), ids.size()) << piece->text;
      }
    }
    for (const std::string run : {"a", " ", "=", "\u1112\u1161\u11AB", "\u212A"}) {
      std::string text;
      for (int i = 0; i < 4000; ++i) text += run;
      auto pieces = tokenizer.cut(text);
      const auto piece = pieces->next();
      std::vector<TokenId> ids;
      tokenizer.encode_piece(*piece, ids);
      EXPECT_LE(tokenizer.ids_min(*piece), ids.size()) << run;
      EXPECT_GE(tokenizer.ids_min(*piece), ids.size() / 40) << run;
    }
  }
}

TEST(Tokenizer, LowerBoundOfIdsUsesTheNormalizedText) {
  // Every byte is a token, except those of "ab". The bound is then the number of ids.
  const auto tokenizer = Tokenizer::create(small_model_file());
  ASSERT_TRUE(tokenizer.ok());
  for (const std::string part : {"\u1112\u1161\u11AB", "\u212A", "e\u0301", "\u4F60", "1"}) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += part;
    const std::size_t ids = ids_of(**tokenizer, text).size();
    std::size_t ids_min = 0;
    auto pieces = (*tokenizer)->cut(text);
    while (const auto piece = pieces->next()) ids_min += (*tokenizer)->ids_min(*piece);
    EXPECT_LE(ids_min, ids) << part;
    EXPECT_GE(ids_min, ids / 2) << part;
  }
}

}  // namespace
}  // namespace sightline::tokenizer
