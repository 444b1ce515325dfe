// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/expansion.h"

#include <gtest/gtest.h>

#include "router/prompt/tokenizer/tokenizer.h"
#include "simulator/processor/checkpoint.h"
#include "tests/golden/images/table.h"
#include "tests/support/paths.h"

namespace sightline::processor {
namespace {

constexpr TokenId kImage = 11;
constexpr TokenId kVideo = 13;

using Ids = std::vector<TokenId>;

void encode(const tokenizer::Tokenizer& tokenizer, std::string_view text, Ids& ids) {
  ASSERT_TRUE(tokenizer.encode(text, ids).ok()) << text;
}

Ids ids_of_runs(const json::Value& runs, const tokenizer::Tokenizer& tokenizer) {
  Ids ids;
  for (const json::Value run : runs) {
    auto count = run.begin();
    ++count;
    for (std::int64_t i = 0; i < (*count).integer().value_or(0); ++i) {
      encode(tokenizer, (*run.begin()).string().value_or(""), ids);
    }
  }
  return ids;
}

std::vector<Item> items_of(const json::Value& sizes, const Checkpoint& checkpoint) {
  std::vector<Item> items;
  for (const json::Value size : sizes) {
    const auto width = (*size.begin()).integer().value_or(0);
    const auto height = (*++size.begin()).integer().value_or(0);
    const auto grid = grid_of(*checkpoint.images, {.width = static_cast<std::uint32_t>(width),
                                                   .height = static_cast<std::uint32_t>(height)});
    if (grid.ok()) items.push_back({*checkpoint.image_token, grid->tokens()});
  }
  return items;
}

TEST(Expansion, TokensEqualTheHuggingFaceProcessors) {
  const std::pair<const char*, const char*> tables[] = {{"qwen2_vl", "qwen2-vl"},
                                                        {"qwen2_vl_max1003520", "tiny-qwen2-vl"},
                                                        {"qwen2_5_vl", "qwen2_5-vl"},
                                                        {"qwen3_vl", "qwen3-vl"}};
  for (const auto& [table, model] : tables) {
    const std::string directory = test::in_build("models/") + std::string(model);
    const auto checkpoint = read_checkpoint(directory);
    const auto tokenizer =
        tokenizer::Tokenizer::create(golden::content_of(directory + "/tokenizer.json"));
    ASSERT_TRUE(checkpoint.ok() && tokenizer.ok());
    std::size_t compared = 0;
    const std::string path = test::in_sources("tests/data/image-counts/") + std::string(table);
    for (const json::Document& document : golden::rows_of(path + ".jsonl.gz")) {
      const json::Value row = document.root();
      if (row.find("error")) continue;
      Ids rendered;
      encode(**tokenizer, golden::text(row, "prompt"), rendered);
      const auto prompt =
          expand(rendered, items_of(*row.find("sizes"), *checkpoint), {*checkpoint->image_token});
      ASSERT_TRUE(prompt.ok()) << table << " " << golden::text(row, "id");
      EXPECT_EQ(prompt->tokens, ids_of_runs(*row.find("rle"), **tokenizer))
          << table << " " << golden::text(row, "id");
      ++compared;
    }
    EXPECT_GE(compared, 100U) << table;
  }
}

TEST(Expansion, PlaceholderBecomesTheNextItemOfItsKind) {
  const auto prompt = expand({1, kImage, 2, kImage, kVideo, 3},
                             {{kImage, 2}, {kVideo, 1}, {kImage, 3}}, {kImage, kVideo});
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt->tokens, (Ids{1, kImage, kImage, 2, kImage, kImage, kImage, kVideo, 3}));
  ASSERT_EQ(prompt->runs.size(), 3U);
  EXPECT_EQ(prompt->runs[1].item, 2U);
  EXPECT_EQ(prompt->runs[1].offset, 4U);
  EXPECT_EQ(prompt->runs[1].length, 3U);
}

TEST(Expansion, RefusesLeftoverItemsAndPlaceholders) {
  const std::vector<Item> one{{kImage, 2}};
  EXPECT_FALSE(expand({1, kImage, kImage}, one, {kImage, kVideo}).ok());
  EXPECT_FALSE(expand({1, 2}, one, {kImage, kVideo}).ok());
  EXPECT_FALSE(expand({1, kImage}, {}, {kImage, kVideo}).ok());
  EXPECT_FALSE(expand({kImage, kVideo}, one, {kImage, kVideo}).ok());
  // Here kVideo is an ordinary token of the model.
  EXPECT_TRUE(expand({kImage, kVideo}, one, {kImage}).ok());
  EXPECT_TRUE(expand({1, 2}, {}, {kImage, kVideo}).ok());
}

}  // namespace
}  // namespace sightline::processor
