// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/header.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/golden/images/image_files.h"
#include "tests/support/paths.h"
#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

const std::filesystem::path kFiles = test::in_sources("tests/data/image-files");

std::vector<std::string> recorded_files() {
  std::vector<std::string> contents;
  for (const json::Document& row : golden::rows_of(kFiles / "expected.jsonl")) {
    contents.push_back(golden::content_of(kFiles / golden::text(row.root(), "file")));
  }
  return contents;
}

TEST(ImageHeader, MeasuresEveryRecordedFileAsTheEngineDoes) {
  const golden::Tally tally = golden::check_image_files(kFiles / "expected.jsonl", kFiles);
  EXPECT_EQ(tally.failures, std::vector<std::string>{});
  EXPECT_EQ(tally.passed, 95U);
}

TEST(ImageHeader, MeasuresTheImagesOfRecordedSessions) {
  const std::map<std::string, std::string> want{
      {"a_112x112.png", "png 112x112"},      {"a2_112x112_recompressed.png", "png 112x112"},
      {"b_224x168.png", "png 224x168"},      {"c_280x280.png", "png 280x280"},
      {"d_420x56.jpg", "jpeg 420x56"},       {"e_112x112.png", "png 112x112"},
      {"f_196x84_exif6.jpg", "jpeg 84x196"}, {"g_140x84.webp", "webp 140x84"},
      {"h_84x84_palette.png", "png 84x84"},  {"i_84x84_rgba.png", "png 84x84"},
      {"j_84x84_gray.png", "png 84x84"}};
  for (const auto& [name, size] : want) {
    EXPECT_EQ(seen(golden::content_of(test::in_sources("tests/data/images/") + name)), size)
        << name;
  }
}

// Each prefix has a buffer of its own, which makes a read past its end visible.
TEST(ImageHeader, SurvivesEveryCutOfEveryFile) {
  std::set<std::string> outcomes;
  for (const std::string& whole : recorded_files()) {
    const std::size_t step = whole.size() > 8192 ? 41 : 1;
    for (std::size_t length = 0; length <= whole.size(); length += step) {
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<long>(length));
      outcomes.insert(seen({cut.data(), cut.size()}));
    }
  }
  EXPECT_TRUE(outcomes.contains("refused"));
  EXPECT_GT(outcomes.size(), 10U);
}

TEST(ImageHeader, SurvivesDamagedBytes) {
  Rng rng(20260814);
  std::size_t refused = 0;
  std::size_t known = 0;
  for (const std::string& whole : recorded_files()) {
    if (whole.empty()) continue;
    for (int round = 0; round < 300; ++round) {
      std::vector<char> damaged(whole.begin(), whole.end());
      const auto flips = 1 + rng.below(4);
      for (std::uint64_t i = 0; i < flips; ++i) {
        const std::size_t reach = std::min<std::size_t>(damaged.size(), 512);
        damaged[rng.below(reach)] = static_cast<char>(rng.below(256));
      }
      const std::string outcome = seen({damaged.data(), damaged.size()});
      (outcome == "refused" || outcome == "too large" ? refused : known) += 1;
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(known, 1000U);
}

TEST(ImageHeader, RefusesMorePixelsThanTheEngineTakes) {
  const auto png = [](std::uint32_t width, std::uint32_t height) {
    return "\x89PNG\r\n\x1a\n" + png_header(width, height) + png_chunk("IDAT", "");
  };
  EXPECT_EQ(seen(png(178'956'970, 1)), "png 178956970x1");
  EXPECT_EQ(seen(png(178'956'971, 1)), "too large");
  EXPECT_EQ(seen(png(13377, 13377)), "png 13377x13377");
  EXPECT_EQ(seen(png(13378, 13378)), "too large");
  EXPECT_EQ(seen(png(0xFFFFFFFF, 0xFFFFFFFF)), "too large");
  EXPECT_NE(refusal(png(13378, 13378)).find("13378 x 13378"), std::string::npos);
}

TEST(ImageHeader, FormatsWithoutAReaderAreUnknown) {
  const std::string tga = std::string("\0\0\x02", 3) + std::string(9, '\0') + le16(40) + le16(24) +
                          std::string("\x18\x20", 2) + "pixels";
  for (const std::string& encoded :
       {tga, std::string("\x0a\x05\x01\x08", 4), std::string("P6\n40 24\n255\n"),
        std::string("\0\0\0\x1c"
                    "ftypavif",
                    12),
        std::string("\0\0\0\x1c"
                    "ftypmif1",
                    12),
        std::string("\xff\x4f\xff\x51", 4), std::string("qoif"), std::string("8BPS")}) {
    EXPECT_EQ(seen(encoded), "unknown") << to_hex(bytes_of(encoded));
  }
}

TEST(ImageHeader, RefusesOtherBytesAndNamesTheFormats) {
  for (const std::string& encoded :
       {std::string(), std::string("x"), std::string("<html></html>"), std::string("%PDF-1.7"),
        std::string("%!PS-Adobe-3.0 EPSF-3.0"),
        std::string("\0\0\0\x18"
                    "ftypheic",
                    12)}) {
    EXPECT_EQ(seen(encoded), "refused");
    EXPECT_NE(refusal(encoded).find("JPEG, PNG, WebP"), std::string::npos);
  }
}

}  // namespace
}  // namespace sightline::image
