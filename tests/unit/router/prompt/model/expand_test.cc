// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/expand.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/golden/images/counts.h"
#include "tests/support/paths.h"

namespace sightline::model {
namespace {

constexpr TokenId kStart = 10;
constexpr TokenId kImage = 11;
constexpr TokenId kEnd = 12;
constexpr TokenId kVideo = 13;
constexpr std::size_t kTokensMax = 1000;

const Placeholders kPlaceholders{
    .image = kImage, .video = kVideo, .vision_start = kStart, .vision_end = kEnd};

MediaItem image_of(std::optional<std::uint32_t> tokens) {
  return {PlaceholderKind::Image, "i", tokens};
}

Prompt expanded(const std::vector<TokenId>& rendered, const std::vector<MediaItem>& items) {
  auto prompt = expand({rendered, kTokensMax}, items, kPlaceholders);
  EXPECT_TRUE(prompt.ok());
  return prompt.ok() ? *prompt : Prompt{};
}

TEST(Expand, GivesTheIdsOfEveryRecordedExpansion) {
  const std::pair<const char*, const char*> tables[] = {{"qwen2_vl", "qwen2-vl"},
                                                        {"qwen2_vl_max1003520", "tiny-qwen2-vl"},
                                                        {"qwen2_5_vl", "qwen2_5-vl"},
                                                        {"qwen3_vl", "qwen3-vl"}};
  for (const auto& [table, model] : tables) {
    const std::string directory = test::in_build("models/") + std::string(model);
    const auto tokenizer =
        tokenizer::Tokenizer::create(golden::content_of(directory + "/tokenizer.json"));
    ASSERT_TRUE(tokenizer.ok());
    const auto tally = golden::check_expansions(
        test::in_sources("tests/data/image-counts/") + std::string(table) + ".jsonl.gz",
        golden::profile_of(model), **tokenizer);
    EXPECT_EQ(tally.failures, std::vector<std::string>{}) << table;
    EXPECT_EQ(tally.passed, 108U) << table;
  }
}

TEST(Expand, EachPlaceholderBecomesItsItem) {
  const Prompt prompt = expanded({1, kStart, kImage, kEnd, 2, kImage, kVideo, 3},
                                 {image_of(2), {PlaceholderKind::Video, "v", 1}, image_of(3)});
  EXPECT_EQ(prompt.certainty, Certainty::Exact);
  EXPECT_EQ(prompt.tokens, (std::vector<TokenId>{1, kStart, kImage, kImage, kEnd, 2, kImage, kImage,
                                                 kImage, kVideo, 3}));
  EXPECT_EQ(prompt.spans, (std::vector<PlaceholderSpan>{{0, 2, 2}, {2, 6, 3}, {1, 9, 1}}));
  EXPECT_EQ(prompt.exact_tokens, prompt.tokens.size());
}

TEST(Expand, TextWithoutMediaIsItself) {
  const Prompt prompt = expanded({1, 2, 3}, {});
  EXPECT_EQ(prompt.certainty, Certainty::Exact);
  EXPECT_EQ(prompt.tokens, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(prompt.exact_tokens, 3U);
}

TEST(Expand, WrongNumberOfPlaceholdersIsAMismatch) {
  struct Case {
    std::string name;
    std::vector<TokenId> rendered;
    std::vector<MediaItem> items;
  };
  const std::vector<Case> cases{
      {"a placeholder in the user's text", {1, kImage, kImage}, {image_of(2)}},
      {"a placeholder and no item", {1, kImage}, {}},
      {"an item and no placeholder", {1, 2}, {image_of(2)}},
      {"an already expanded prompt", {1, kImage, kImage, kImage}, {image_of(3)}},
      {"a video placeholder in the user's text", {1, kVideo, kImage}, {image_of(2)}},
      {"modalities swapped", {1, kVideo}, {image_of(2)}},
      {"audio, which has no placeholder",
       {1, kImage},
       {image_of(2), {PlaceholderKind::Audio, "a", 5}}}};
  for (const Case& c : cases) {
    const Prompt prompt = expanded(c.rendered, c.items);
    EXPECT_EQ(prompt.certainty, Certainty::Mismatch) << c.name;
    EXPECT_EQ(prompt.exact_tokens, 0U) << c.name;
    EXPECT_TRUE(prompt.spans.empty()) << c.name;
    EXPECT_EQ(prompt.tokens, c.rendered) << c.name;
  }
}

TEST(Expand, TokensAreCertainUpToTheFirstUnknownItem) {
  const Prompt prompt = expanded({1, kImage, 2, kImage, 3, kImage, 4},
                                 {image_of(2), image_of(std::nullopt), image_of(2)});
  EXPECT_EQ(prompt.certainty, Certainty::UnknownMedia);
  EXPECT_EQ(prompt.exact_tokens, 4U);
  EXPECT_EQ(prompt.tokens, (std::vector<TokenId>{1, kImage, kImage, 2, kImage, 3, kImage, 4}));
  EXPECT_EQ(prompt.spans, (std::vector<PlaceholderSpan>{{0, 1, 2}}));
}

TEST(Expand, TooLongPromptIsRefusedBeforeItIsBuilt) {
  const std::vector<TokenId> rendered{1, kImage, 2};
  const std::vector<MediaItem> fits{image_of(kTokensMax - 2)};
  const std::vector<MediaItem> one_more{image_of(kTokensMax - 1)};
  const std::vector<MediaItem> huge{image_of(0xFFFFFFFFU)};
  EXPECT_TRUE(expand({rendered, kTokensMax}, fits, kPlaceholders).ok());
  for (const auto& items : {one_more, huge}) {
    const auto refused = expand({rendered, kTokensMax}, items, kPlaceholders);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
    EXPECT_NE(refused.error().message.find("1000 tokens"), std::string::npos);
  }
  EXPECT_FALSE(expand({rendered, 2}, fits, kPlaceholders).ok());
}

// A second implementation, as plain as possible: split at the placeholders and join again.
TEST(Expand, RandomPromptsAgreeWithAPlainImplementation) {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> rendered;
    std::vector<TokenId> want;
    std::vector<MediaItem> items;
    const auto length = rng.below(12);
    for (std::uint32_t i = 0; i < length; ++i) {
      if (rng.below(3) != 0) {
        rendered.push_back(rng.below(10));
        want.push_back(rendered.back());
        continue;
      }
      const bool is_video = rng.below(4) == 0;
      const auto tokens = rng.below(5);
      items.push_back({is_video ? PlaceholderKind::Video : PlaceholderKind::Image, "x", tokens});
      rendered.push_back(is_video ? kVideo : kImage);
      want.insert(want.end(), tokens, rendered.back());
    }
    EXPECT_EQ(expanded(rendered, items).tokens, want);
  }
}

}  // namespace
}  // namespace sightline::model
