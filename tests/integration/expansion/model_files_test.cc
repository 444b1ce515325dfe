// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/integration/expansion/models.h"

namespace sightline::test {
namespace {

void expect_same_images(const ModelPair& model) {
  ASSERT_TRUE(model.engine.images) << model.name;
  const model::ImageRule want = rule_of(*model.engine.images);
  EXPECT_EQ(model.router.image_rule.patch, want.patch) << model.name;
  EXPECT_EQ(model.router.image_rule.merge, want.merge) << model.name;
  EXPECT_EQ(model.router.image_rule.pixels_min, want.pixels_min) << model.name;
  EXPECT_EQ(model.router.image_rule.pixels_max, want.pixels_max) << model.name;
}

TEST(ModelFiles, OfEveryModelGiveBothSidesTheSameSettings) {
  const auto models = all_models();
  EXPECT_GE(models.size(), 4U);
  for (const ModelPair& model : models) {
    expect_same_images(model);
    EXPECT_EQ(model.router.placeholders.image, model.engine.image_token) << model.name;
    EXPECT_EQ(model.router.placeholders.video, model.engine.video_token) << model.name;
    EXPECT_EQ(model.router.tokens_max, model.engine.tokens_max) << model.name;
    EXPECT_EQ(model.router.model_type, model.engine.model_type) << model.name;
    EXPECT_EQ(model.router.chat_template, model.engine.chat_template) << model.name;
    ASSERT_EQ(model.router.special_tokens.size(), model.engine.special_tokens.size());
    for (std::size_t i = 0; i < model.router.special_tokens.size(); ++i) {
      EXPECT_EQ(model.router.special_tokens[i].name, model.engine.special_tokens[i].first);
      EXPECT_EQ(model.router.special_tokens[i].text, model.engine.special_tokens[i].second);
    }
  }
}

// A member of a JSON object, null, or nothing.
std::string maybe(Rng& rng, const std::string& name, std::uint32_t number) {
  const std::uint32_t chance = rng.below(5);
  if (chance < 2) return "";
  return ",\"" + name + "\":" + (chance == 2 ? "null" : std::to_string(number));
}

// Settings of an image processor as published files have them. A given "size" is complete, because
// transformers refuses an incomplete one.
std::string random_settings(Rng& rng) {
  std::string text = R"({"do_resize":true)";
  text += maybe(rng, "patch_size", 1 + rng.below(30)) + maybe(rng, "merge_size", 1 + rng.below(4));
  text += maybe(rng, "min_pixels", 1 + rng.below(3000));
  text += maybe(rng, "max_pixels", 3000 + rng.below(2'000'000));
  if (rng.below(2) == 0) {
    text += R"(,"size":{"shortest_edge":)" + std::to_string(1 + rng.below(3000)) +
            R"(,"longest_edge":)" + std::to_string(3000 + rng.below(2'000'000)) + "}";
  }
  return text + "}";
}

TEST(ModelFiles, WithRandomImageSettingsGiveBothSidesTheSame) {
  Rng rng(31);
  const std::string directory = testing::TempDir() + "sl_expansion";
  std::filesystem::create_directories(directory);
  const auto write = [&](const char* name, const std::string& content) {
    std::ofstream(directory + "/" + name) << content;
    return content;
  };
  for (int round = 0; round < 2'000; ++round) {
    const char* types[] = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"};
    model::ModelFiles files;
    files.config = write("config.json", R"({"image_token_id":5,"video_token_id":6,"model_type":")" +
                                            std::string(types[rng.below(4)]) + "\"}");
    files.preprocessor = write("preprocessor_config.json", random_settings(rng));
    const std::string nested =
        rng.below(3) == 0 ? R"({"image_processor":)" + random_settings(rng) + "}" : "{}";
    files.processor = write("processor_config.json", nested);
    auto router = model::parse_model(files);
    auto engine = processor::read_checkpoint(directory);
    ASSERT_TRUE(router.ok() && engine.ok());
    expect_same_images(
        {files.config + *files.preprocessor + nested, *std::move(router), *std::move(engine)});
    if (HasFailure()) break;
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sightline::test
