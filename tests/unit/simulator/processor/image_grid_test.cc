// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/image_grid.h"

#include <gtest/gtest.h>

#include "simulator/processor/checkpoint.h"
#include "tests/golden/images/table.h"
#include "tests/support/paths.h"

namespace sightline::processor {
namespace {

const std::string kTables = test::in_sources("tests/data/image-counts/");

ImageSettings settings_of(const std::string& model) {
  const auto checkpoint = read_checkpoint(test::in_sources("tests/data/models/") + model);
  EXPECT_TRUE(checkpoint.ok() && checkpoint->images) << model;
  return *checkpoint->images;
}

std::vector<std::uint32_t> numbers_of(const json::Value& list) {
  std::vector<std::uint32_t> numbers;
  for (const json::Value number : list) {
    numbers.push_back(static_cast<std::uint32_t>(number.integer().value_or(0)));
  }
  return numbers;
}

TEST(ImageGrid, PatchesEqualTheHuggingFaceProcessors) {
  const std::pair<const char*, const char*> tables[] = {{"qwen2_vl", "qwen2-vl"},
                                                        {"qwen2_vl_max1003520", "tiny-qwen2-vl"},
                                                        {"qwen2_5_vl", "qwen2_5-vl"},
                                                        {"qwen3_vl", "qwen3-vl"}};
  for (const auto& [table, model] : tables) {
    const ImageSettings settings = settings_of(model);
    std::size_t compared = 0;
    for (const json::Document& row : golden::rows_of(kTables + table + ".jsonl.gz")) {
      const json::Value sizes = *row.root().find("sizes");
      const auto wanted = row.root().find("grid");
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        auto size = sizes.begin();
        for (std::size_t k = 0; k < i; ++k) ++size;
        const auto sides = numbers_of(*size);
        const auto grid = grid_of(settings, {.width = sides.at(0), .height = sides.at(1)});
        const std::string where = std::string(table) + " " + golden::text(row.root(), "id");
        ++compared;
        ASSERT_EQ(grid.ok(), !row.root().find("error")) << where;
        if (!grid.ok()) continue;
        auto patches = wanted->find("image_grid_thw")->begin();
        for (std::size_t k = 0; k < i; ++k) ++patches;
        const std::vector<std::uint32_t> seen{
            1, static_cast<std::uint32_t>(grid->rows * settings.merge_size),
            static_cast<std::uint32_t>(grid->columns * settings.merge_size)};
        EXPECT_EQ(seen, numbers_of(*patches)) << where;
      }
    }
    EXPECT_GE(compared, 108U) << table;
  }
}

TEST(ImageGrid, TokenCountsEqualTheEngine) {
  const std::pair<const char*, const char*> families[] = {{"qwen2-vl-12845056", "qwen2-vl"},
                                                          {"qwen2-vl-1003520", "tiny-qwen2-vl"},
                                                          {"qwen2.5-vl", "qwen2_5-vl"},
                                                          {"qwen3-vl", "qwen3-vl"}};
  const auto rows = golden::rows_of(kTables + "engine.jsonl.gz");
  for (const auto& [family, model] : families) {
    std::size_t compared = 0;
    for (const json::Document& document : rows) {
      const json::Value row = document.root();
      if (golden::text(row, "family") != family) continue;
      const PictureSize size{.width = static_cast<std::uint32_t>(golden::number(row, "width")),
                             .height = static_cast<std::uint32_t>(golden::number(row, "height"))};
      const auto grid = grid_of(settings_of(model), size);
      ASSERT_TRUE(grid.ok());
      EXPECT_EQ(static_cast<std::int64_t>(grid->tokens()),
                golden::number(row, "placeholder_length"))
          << family << " " << size.width << "x" << size.height;
      ++compared;
    }
    EXPECT_EQ(compared, 26U) << family;
  }
}

TEST(ImageGrid, RefusesEmptyAndVeryLongImages) {
  EXPECT_TRUE(grid_of({}, {.width = 2000, .height = 10}).ok());
  for (const PictureSize size : {PictureSize{2001, 10}, {10, 2001}, {0, 10}, {10, 0}, {0, 0}}) {
    const auto grid = grid_of({}, size);
    ASSERT_FALSE(grid.ok()) << size.width << "x" << size.height;
    EXPECT_EQ(grid.error().code, ErrorCode::InvalidArgument);
  }
}

}  // namespace
}  // namespace sightline::processor
