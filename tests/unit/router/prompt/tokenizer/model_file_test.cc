// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/model_file.h"

#include <gtest/gtest.h>

#include "tests/unit/router/prompt/tokenizer/fixture.h"

namespace sightline::tokenizer {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ModelFile, ReadsTokensMergesAndAddedTokens) {
  const auto file = parse_model_file(small_model_file());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->nfc);
  EXPECT_EQ(file->vocabulary.find("ab"), 256U);
  EXPECT_EQ(file->vocabulary.find("\n"), 10U);
  EXPECT_EQ(file->vocabulary.find("\xFF"), 255U);
  EXPECT_EQ(file->vocabulary.find("<x>"), 257U);
  ASSERT_EQ(file->merges.size(), 1U);
  EXPECT_EQ(file->merges[0].left, 97U);
  EXPECT_EQ(file->merges[0].result, 256U);
  ASSERT_EQ(file->added_tokens.size(), 1U);
  EXPECT_EQ(file->added_tokens[0].content, "<x>");
}

TEST(ModelFile, BothFormsOfMergesAreRead) {
  const auto file = parse_model_file(replaced(small_model_file(), R"(["a b"])", R"([["a","b"]])"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->merges.at(0).right, 98U);
}

struct Change {
  std::string_view name;
  std::string_view from;
  std::string_view to;
  ErrorCode want_code;
  std::string_view want_place;
};

class ModelFileRefusal : public testing::TestWithParam<Change> {};

TEST_P(ModelFileRefusal, NamesThePlace) {
  const Change& change = GetParam();
  const auto file = parse_model_file(replaced(small_model_file(), change.from, change.to));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, change.want_code) << file.error().message;
  EXPECT_NE(file.error().message.find(change.want_place), std::string::npos)
      << file.error().message;
}

constexpr auto kNo = ErrorCode::Unsupported;
constexpr auto kBad = ErrorCode::InvalidArgument;
INSTANTIATE_TEST_SUITE_P(
    Changes, ModelFileRefusal,
    testing::Values(
        Change{"OtherModel", R"("type":"BPE")", R"("type":"Unigram")", kNo, "/model/type"},
        Change{"NoModelType", R"("type":"BPE",)", "", kBad, "/model/type"},
        Change{"ByteFallback", R"("byte_fallback":false)", R"("byte_fallback":true)", kNo,
               "/model/byte_fallback"},
        Change{"IgnoreMerges", R"("byte_fallback":false)", R"("ignore_merges":true)", kNo,
               "/model/ignore_merges"},
        Change{"UnknownToken", R"("unk_token":null)", R"("unk_token":"<unk>")", kNo,
               "/model/unk_token"},
        Change{"Dropout", R"("dropout":null)", R"("dropout":0.1)", kNo, "/model/dropout"},
        Change{"NewModelSetting", R"("dropout":null)", R"("mystery":1)", kNo, "/model/mystery"},
        Change{"OtherNormalizer", R"({"type":"NFC"})", R"({"type":"NFKC"})", kNo,
               "/normalizer/type"},
        Change{"OtherPattern", R"(|\\s+"})", R"(|\\s"})", kNo,
               "/pre_tokenizer/pretokenizers/0/pattern/Regex"},
        Change{"OtherSplit", R"("Isolated")", R"("Removed")", kNo,
               "/pre_tokenizer/pretokenizers/0/behavior"},
        Change{"PrefixSpace", R"("add_prefix_space":false)", R"("add_prefix_space":true)", kNo,
               "/pre_tokenizer/pretokenizers/1/add_prefix_space"},
        Change{"ByteLevelRegex", R"("use_regex":false)", R"("use_regex":true)", kNo,
               "/pre_tokenizer/pretokenizers/1/use_regex"},
        Change{"Truncation", R"("truncation":null)", R"("truncation":{"max_length":5})", kNo,
               "/truncation"},
        Change{"PostProcessor", R"("post_processor":null)",
               R"("post_processor":{"type":"TemplateProcessing"})", kNo, "/post_processor/type"},
        Change{"NewSetting", R"("decoder":null)", R"("mystery":null)", kNo, "/mystery"},
        Change{"SingleWord", R"("single_word":false)", R"("single_word":true)", kNo,
               "/added_tokens/0/single_word"},
        Change{"Normalized", R"("normalized":false)", R"("normalized":true)", kNo,
               "/added_tokens/0/normalized"},
        Change{"AddedId", R"("id":257)", R"("id":300)", kNo, "/added_tokens/0/id"},
        Change{"AddedIdIsText", R"("id":257)", R"("id":"257")", kBad, "/added_tokens/0/id"},
        Change{"EmptyAdded", R"("content":"<x>")", R"("content":"")", kBad,
               "/added_tokens/0/content"},
        Change{"AddedWithBlank", R"("content":"<x>")", R"("content":"< >")", kNo,
               "/added_tokens/0/content"},
        Change{"NotJson", R"("version")", R"(version")", kBad, "JSON"},
        Change{"NoVersion", R"("version":"1.0",)", "", kBad, "/version"},
        Change{"MergeOfThree", R"(["a b"])", R"(["a b c"])", kBad, "/model/merges/0"},
        Change{"MergeOfOne", R"(["a b"])", R"([["a"]])", kBad, "/model/merges/0"},
        Change{"MergeNotText", R"(["a b"])", R"([["a",1]])", kBad, "/model/merges/0"},
        Change{"MergeUnknown", R"(["a b"])", R"(["b a"])", kBad, "/model/merges/0"},
        Change{"MergesNotAList", R"(["a b"])", R"({"a":"b"})", kBad, "/model/merges"},
        Change{"IdTwice", R"("ab":256)", R"("ab":97)", kBad, "/model/vocab/ab"},
        Change{"IdNegative", R"("ab":256)", R"("ab":-1)", kBad, "/model/vocab/ab"},
        Change{"IdHuge", R"("ab":256)", R"("ab":4294967296)", kBad, "/model/vocab/ab"},
        Change{"IdFraction", R"("ab":256)", R"("ab":256.5)", kBad, "/model/vocab/ab"},
        Change{"TokenOutsideAlphabet", R"("ab":256)", R"("a b":256)", kNo, "/model/vocab/a b"},
        Change{"ByteMissing", R"("a":97,)", "", kNo, "without a token for byte 97"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(ModelFile, NoPrefixOfAFileCrashes) {
  std::string whole = small_model_file();
  for (const std::string_view setting :
       {R"("truncation":null,)", R"("padding":null,)", R"("post_processor":null,)",
        R"("decoder":null,)", R"("dropout":null,)", R"("unk_token":null,)"}) {
    whole = replaced(whole, setting, "");
  }
  ASSERT_TRUE(parse_model_file(whole).ok());
  for (std::size_t size = 0; size < whole.size(); size += 3) {
    EXPECT_FALSE(parse_model_file(std::string_view(whole).substr(0, size)).ok());
  }
}

TEST(ModelFile, ReadsTheQwenFilesWhole) {
  const auto qwen3 = parse_model_file(read_test_file("qwen3.tokenizer.json"));
  ASSERT_TRUE(qwen3.ok()) << qwen3.error().message;
  EXPECT_EQ(qwen3->vocabulary.size(), 151'669U);
  EXPECT_EQ(qwen3->merges.size(), 151'387U);
  EXPECT_EQ(qwen3->added_tokens.size(), 26U);
}

}  // namespace
}  // namespace sightline::tokenizer
