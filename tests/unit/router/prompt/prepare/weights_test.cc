// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/weights.h"

#include <gtest/gtest.h>

#include "common/runtime/io_pool.h"

namespace sightline::prepare {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string whole;
  while (whole.size() < bytes) whole += text;
  return whole;
}

std::string chat(std::string_view parts) {
  return R"({"model":"m","messages":[{"role":"user","content":[)" + std::string(parts) + "]}]}";
}

std::string text_part(std::string_view text) {
  return R"({"type":"text","text":")" + std::string(text) + "\"}";
}

std::string image_part(std::size_t base64_bytes) {
  return R"({"type":"image_url","image_url":{"url":"data:image/png;base64,)" +
         std::string(base64_bytes, 'A') + "\"}}";
}

openai::ApiRequest parsed(std::string body) {
  auto request = openai::parse_request(openai::Endpoint::Chat, std::move(body), {.images_max = 64});
  EXPECT_TRUE(request.ok()) << request.error().message;
  return std::move(request).value();
}

// The least and the greatest weight of many draws.
struct Weights {
  std::size_t least = SIZE_MAX;
  std::size_t greatest = 0;
};

Weights parse_weights(std::string_view body) {
  Weights weights;
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    const std::size_t weight = parse_weight(body, Rng(draw));
    weights.least = std::min(weights.least, weight);
    weights.greatest = std::max(weights.greatest, weight);
  }
  return weights;
}

TEST(ParseWeight, LargeImageWithAShortQuestionStaysOnItsThread) {
  const std::string body = chat(image_part(kMiB) + "," + text_part("What is this?"));
  EXPECT_LE(parse_weights(body).greatest, kInlineWeightMax);
}

TEST(ParseWeight, DenseJsonLeavesItsThreadForEveryDraw) {
  for (const std::string_view dense : {"1,", "[],", "{\"a\":{}},", "\\n", "\\u00e9", "a word, "}) {
    const Weights weights = parse_weights(repeated(dense, kMiB));
    EXPECT_GE(weights.least, 2 * (kMiB - kMiB / 96)) << dense;
  }
}

TEST(ParseWeight, DenseJsonBesideAnImageCountsByItsShare) {
  // This is a fifth of the body. 256 KiB of numbers cost 7 ms, and no draw may miss them.
  const std::string body = chat(image_part(kMiB)) + repeated("1,", kMiB / 4);
  const Weights weights = parse_weights(body);
  EXPECT_GT(weights.least, kInlineWeightMax);
  EXPECT_LT(weights.greatest, kMiB);
}

TEST(ParseWeight, EveryDrawLooksAtOtherPlaces) {
  // One byte in 4 KiB is no base64. The number of looks that find one must depend on the draw.
  std::string body = repeated("A", kMiB);
  for (std::size_t at = 0; at < body.size(); at += 4096) body[at] = ',';
  const Weights weights = parse_weights(body);
  EXPECT_LT(weights.least, weights.greatest);
}

TEST(ParseWeight, AShortBodyCountsAsDense) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4095}}) {
    EXPECT_EQ(parse_weight(std::string(bytes, 'A'), Rng(1)), 2 * bytes);
  }
}

TEST(PrepareWeight, TextWeighsItsBytesAndAnImageFarLess) {
  const openai::ApiRequest plain = parsed(chat(text_part(std::string(100'000, 'a'))));
  EXPECT_GE(prepare_weight(plain, {nullptr}), 100'000U);
  const openai::ApiRequest image =
      parsed(chat(image_part(kMiB) + "," + text_part("What is this?")));
  EXPECT_LE(prepare_weight(image, {nullptr}), kInlineWeightMax);
}

TEST(PrepareWeight, HostileTextLeavesItsThread) {
  // Words that no vocabulary has cost up to 300 ns per byte. A unit is 16 ns.
  const openai::ApiRequest text = parsed(chat(text_part(std::string(3'400, 'a'))));
  EXPECT_GT(prepare_weight(text, {nullptr}), kInlineWeightMax);
}

TEST(PrepareWeight, LongTextBesideAnImageLeavesItsThread) {
  const openai::ApiRequest request =
      parsed(chat(image_part(100) + "," + text_part(std::string(kInlineWeightMax, 'a'))));
  EXPECT_GT(prepare_weight(request, {nullptr}), kInlineWeightMax);
}

TEST(PrepareWeight, ThreeSmallImagesLeaveTheirThread) {
  const std::string two = image_part(100) + "," + image_part(100);
  EXPECT_LE(prepare_weight(parsed(chat(two)), {nullptr, nullptr}), kInlineWeightMax);
  const openai::ApiRequest three = parsed(chat(two + "," + image_part(100)));
  EXPECT_GT(prepare_weight(three, {nullptr, nullptr, nullptr}), kInlineWeightMax);
}

TEST(PrepareWeight, DownloadedBytesCount) {
  const openai::ApiRequest request =
      parsed(chat(R"({"type":"image_url","image_url":{"url":"https://images.example/a.png"}})"));
  const auto large = std::make_shared<const Bytes>(4 * kMiB);
  EXPECT_LE(prepare_weight(request, {nullptr}), kInlineWeightMax);
  EXPECT_GT(prepare_weight(request, {large}), kInlineWeightMax);
}

}  // namespace
}  // namespace sightline::prepare
