// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/prompt/model/image_tokens.h"
#include "simulator/processor/image_grid.h"
#include "tests/integration/expansion/models.h"

namespace sightline::test {
namespace {

using processor::ImageSettings;
using processor::PictureSize;

constexpr std::uint32_t kSideMax = UINT32_MAX;

std::string text_of(bool is_counted, std::uint64_t rows, std::uint64_t columns,
                    std::uint64_t tokens) {
  if (!is_counted) return "refused";
  return std::to_string(rows) + " x " + std::to_string(columns) + " = " + std::to_string(tokens);
}

std::string seen_by_engine(const ImageSettings& settings, const PictureSize& size) {
  const auto grid = processor::grid_of(settings, size);
  if (!grid.ok()) return "refused";
  return text_of(true, grid->rows * settings.merge_size, grid->columns * settings.merge_size,
                 grid->tokens());
}

std::string seen_by_router(const ImageSettings& settings, const PictureSize& size) {
  model::ModelProfile profile;
  profile.family = model::ModelFamily::Qwen2Vl;
  profile.image_rule = rule_of(settings);
  const auto count =
      model::count_image_tokens(profile, {.width = size.width, .height = size.height});
  if (!count.ok()) {
    EXPECT_EQ(count.error().blame, Blame::Client);
    return "refused";
  }
  return text_of(true, count->rows, count->columns, count->tokens);
}

// Counts the comparisons, and names the first pictures that the two sides see differently.
class Comparison {
 public:
  void compare(const ImageSettings& settings, const PictureSize& size) {
    ++compared_;
    const std::string engine = seen_by_engine(settings, size);
    const std::string router = seen_by_router(settings, size);
    refused_ += engine == "refused" ? 1 : 0;
    if (engine == router || ++different_ > 5) return;
    ADD_FAILURE() << size.width << "x" << size.height << ", patch " << settings.patch_size
                  << ", merge " << settings.merge_size << ", area " << settings.shortest_edge
                  << " to " << settings.longest_edge << ": the engine has " << engine
                  << ", the router " << router;
  }
  // Compares the picture and the same one turned.
  void compare_turned(const ImageSettings& settings, const PictureSize& size) {
    compare(settings, size);
    compare(settings, {.width = size.height, .height = size.width});
  }
  ~Comparison() { EXPECT_EQ(different_, 0U) << "of " << compared_; }
  Comparison() = default;
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  std::size_t compared_ = 0;
  std::size_t refused_ = 0;
  std::size_t different_ = 0;
};

std::uint32_t clamped(std::uint64_t side) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(side, 1, kSideMax));
}

// Sides of 2 pixels are as frequent as sides of 2000.
std::uint32_t side_of_any_length(Rng& rng, std::uint32_t bits_max) {
  return clamped(rng.next() >> (64U - 1U - rng.below(bits_max)));
}

std::uint32_t near(Rng& rng, std::uint64_t side) { return clamped(side + rng.below(5) - 2); }

TEST(ImageCounts, AgreeOnEverySmallPicture) {
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    for (std::uint32_t width = 0; width <= 240; ++width) {
      for (std::uint32_t height = 0; height <= 240; ++height) {
        comparison.compare(*model.engine.images, {.width = width, .height = height});
      }
    }
  }
  EXPECT_GT(comparison.refused(), 1000U);
}

// The quotient of a square is often whole. Then the last digit of a root decides.
TEST(ImageCounts, AgreeOnEverySquare) {
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    for (std::uint32_t side = 1; side <= 13'377; ++side) {
      comparison.compare(*model.engine.images, {.width = side, .height = side});
    }
  }
}

TEST(ImageCounts, AgreeOnRandomPicturesOfAnySize) {
  Rng rng(1);
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 20'000; ++round) {
      comparison.compare(*model.engine.images, {.width = side_of_any_length(rng, 14),
                                                .height = side_of_any_length(rng, 14)});
    }
  }
}

TEST(ImageCounts, AgreeAboutTheLimitOfTheSidesRatio) {
  Rng rng(2);
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 5'000; ++round) {
      const std::uint32_t side = side_of_any_length(rng, 18);
      comparison.compare_turned(*model.engine.images,
                                {.width = side, .height = near(rng, std::uint64_t{side} * 200)});
    }
  }
  EXPECT_GT(comparison.refused(), comparison.compared() / 4);
  EXPECT_LT(comparison.refused(), comparison.compared() * 3 / 4);
}

TEST(ImageCounts, AgreeAboutHalfUnitsAndTheLimitsOfTheArea) {
  Rng rng(3);
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    const ImageSettings& settings = *model.engine.images;
    const std::uint64_t unit = settings.patch_size * settings.merge_size;
    for (int round = 0; round < 10'000; ++round) {
      const std::uint32_t width = near(rng, unit * (1 + rng.below(300)) / 2);
      const std::uint64_t limit =
          rng.below(2) == 0 ? settings.shortest_edge : settings.longest_edge;
      comparison.compare_turned(settings, {.width = width, .height = near(rng, limit / width)});
      comparison.compare_turned(
          settings, {.width = width, .height = near(rng, unit * (1 + rng.below(300)) / 2)});
    }
  }
}

// A multiple of the largest unscaled picture. The quotient is whole except for rounding.
TEST(ImageCounts, AgreeOnMultiplesOfThePicturesThatFitExactly) {
  Rng rng(4);
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    const ImageSettings& settings = *model.engine.images;
    const std::uint64_t unit = settings.patch_size * settings.merge_size;
    const std::uint64_t units = settings.longest_edge / unit / unit;
    for (std::uint64_t rows = 1; rows <= units; ++rows) {
      if (units % rows != 0) continue;
      for (std::uint64_t by = 1; by <= 60; ++by) {
        comparison.compare(settings, {.width = clamped(rows * unit * by),
                                      .height = clamped(units / rows * unit * by)});
      }
    }
  }
}

TEST(ImageCounts, AgreeOnOtherSettings) {
  Rng rng(5);
  Comparison comparison;
  for (int round = 0; round < 100'000; ++round) {
    ImageSettings settings{.patch_size = 1 + rng.below(40), .merge_size = 1 + rng.below(4)};
    settings.shortest_edge = side_of_any_length(rng, 24);
    settings.longest_edge = settings.shortest_edge + side_of_any_length(rng, 26);
    comparison.compare(
        settings, {.width = side_of_any_length(rng, 14), .height = side_of_any_length(rng, 14)});
  }
}

// Above 2^53 pixels, Python divides the area more exactly than a double can hold it.
TEST(ImageCounts, OfSquaresNearTheExactLimitAreRefusedOrEqual) {
  constexpr std::uint32_t kLast = 94'906'265;  // its square is the last below 2^53
  Comparison comparison;
  for (const ModelPair& model : all_models()) {
    for (std::uint32_t side = kLast - 1000; side <= kLast + 1000; ++side) {
      const PictureSize size{.width = side, .height = side};
      const bool is_refused = seen_by_router(*model.engine.images, size) == "refused";
      EXPECT_EQ(is_refused, side > kLast) << side;
      if (!is_refused) comparison.compare(*model.engine.images, size);
    }
  }
}

// No loader accepts these pictures. The router may refuse them, but must not count them
// differently.
TEST(ImageCounts, OfImpossiblePicturesAreRefusedOrEqual) {
  Rng rng(6);
  std::size_t refused = 0;
  std::size_t counted = 0;
  for (int round = 0; round < 100'000; ++round) {
    ImageSettings settings{.patch_size = 1 + rng.below(20), .merge_size = 1 + rng.below(2)};
    settings.shortest_edge = 1 + (rng.next() >> (24U + rng.below(39)));
    settings.longest_edge = settings.shortest_edge + (rng.next() >> (25U + rng.below(39)));
    const std::uint32_t width = side_of_any_length(rng, 32);
    const PictureSize size{.width = width,
                           .height = rng.below(2) == 0 ? width : side_of_any_length(rng, 32)};
    const std::string router = seen_by_router(settings, size);
    (router == "refused" ? refused : counted) += 1;
    if (router == "refused") continue;
    ASSERT_EQ(router, seen_by_engine(settings, size))
        << size.width << "x" << size.height << ", patch " << settings.patch_size << ", merge "
        << settings.merge_size << ", area " << settings.shortest_edge << " to "
        << settings.longest_edge;
  }
  EXPECT_GT(counted, 10'000U);
  EXPECT_GT(refused, 10'000U);
}

}  // namespace
}  // namespace sightline::test
