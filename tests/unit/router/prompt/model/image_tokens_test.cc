// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/image_tokens.h"

#include <gtest/gtest.h>

#include "tests/golden/images/counts.h"
#include "tests/support/paths.h"

namespace sightline::model {
namespace {

const std::filesystem::path kTables = test::in_sources("tests/data/image-counts");

std::uint32_t tokens(const std::string& model, ImageSize size) {
  const auto count = count_image_tokens(golden::profile_of(model), size);
  return count.ok() ? count->tokens : 0;
}

TEST(ImageTokens, CountsEqualTheEngines) {
  const std::pair<const char*, const char*> families[] = {{"qwen2-vl-12845056", "qwen2-vl"},
                                                          {"qwen2-vl-1003520", "tiny-qwen2-vl"},
                                                          {"qwen2.5-vl", "qwen2_5-vl"},
                                                          {"qwen3-vl", "qwen3-vl"}};
  for (const auto& [family, model] : families) {
    const auto tally =
        golden::check_engine_counts(kTables / "engine.jsonl.gz", family, golden::profile_of(model));
    EXPECT_EQ(tally.failures, std::vector<std::string>{}) << family;
    EXPECT_EQ(tally.passed, 26U) << family;
  }
}

TEST(ImageTokens, CountsWellKnownSizes) {
  EXPECT_EQ(tokens("qwen2-vl", {1920, 1080}), 2691U);
  EXPECT_EQ(tokens("qwen2-vl", {4032, 3024}), 15552U);
  EXPECT_EQ(tokens("tiny-qwen2-vl", {4032, 3024}), 1230U);
  EXPECT_EQ(tokens("qwen2_5-vl", {640, 480}), 391U);
  EXPECT_EQ(tokens("qwen3-vl", {336, 336}), 100U);
}

// A side below half a unit rounds to 0. The lower area limit then decides.
TEST(ImageTokens, VeryThinImagesGrowByTheLowerLimit) {
  EXPECT_EQ(tokens("qwen2-vl", {1, 200}), 29U);
  EXPECT_EQ(tokens("qwen2-vl", {200, 1}), 29U);
}

TEST(ImageTokens, HalvesRoundToTheEvenUnit) {
  const auto rows = [](std::uint32_t height) {
    return count_image_tokens(golden::profile_of("qwen2-vl"), {280, height})->rows;
  };
  EXPECT_EQ(rows(70), 4U);   // 2.5 units become 2
  EXPECT_EQ(rows(98), 8U);   // 3.5 units become 4
  EXPECT_EQ(rows(126), 8U);  // 4.5 units become 4
}

TEST(ImageTokens, SidesMoreThanTwoHundredTimesApartAreRefused) {
  const ModelProfile profile = golden::profile_of("qwen2-vl");
  EXPECT_TRUE(count_image_tokens(profile, {5600, 28}).ok());
  const auto refused = count_image_tokens(profile, {5601, 28});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().blame, Blame::Client);
  EXPECT_NE(refused.error().message.find("5601 x 28"), std::string::npos);
  EXPECT_FALSE(count_image_tokens(profile, {0, 10}).ok());
}

TEST(ImageTokens, ImageBeyondExactCountingIsRefused) {
  ModelProfile profile = golden::profile_of("qwen2-vl");
  EXPECT_TRUE(count_image_tokens(profile, {94'906'265, 94'906'265}).ok());
  const auto refused = count_image_tokens(profile, {94'906'266, 94'906'266});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
  profile.image_rule.pixels_min = profile.image_rule.pixels_max = std::uint64_t{1} << 40U;
  EXPECT_FALSE(count_image_tokens(profile, {10, 10}).ok());
}

TEST(ImageTokens, AModelWithoutARuleIsUnsupported) {
  ModelProfile profile;
  profile.model_type = "llava";
  const auto count = count_image_tokens(profile, {10, 10});
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code, ErrorCode::Unsupported);
  EXPECT_NE(count.error().message.find("llava"), std::string::npos);
}

}  // namespace
}  // namespace sightline::model
