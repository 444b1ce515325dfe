// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/image_size.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "common/base/json.h"
#include "common/base/rng.h"

#include "tests/support/paths.h"

namespace sightline::api {
namespace {

const std::string kFiles = test::in_sources("tests/data/image-files/");

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// True for formats that simulated engines do not read. True also for one PNG file that libpng
// refuses
// and Pillow reads.
bool is_out_of_scope(const json::Value& row) {
  static const std::set<std::string_view> formats{"TIFF", "DIB",      "TGA", "PCX",
                                                  "AVIF", "JPEG2000", "EPS"};
  const auto format = row.find("format");
  return (format && formats.contains(format->string().value_or(""))) ||
         row.find("file")->string() == "ihdr-not-first.png";
}

TEST(ImageSize, EqualsTheReferenceOnAllFilesInScope) {
  std::istringstream rows(read(kFiles + "expected.jsonl"));
  std::size_t compared = 0;
  for (std::string line; std::getline(rows, line);) {
    const auto document = json::Document::parse(line);
    ASSERT_TRUE(document.ok());
    const json::Value row = document->root();
    if (is_out_of_scope(row)) continue;
    const std::string name(*row.find("file")->string());
    const std::string file = read(kFiles + name);
    const auto size = measure_image(bytes_of(file));
    ++compared;
    if (row.find("vllm")->string() != "ok") {
      EXPECT_FALSE(size.ok()) << name;
      continue;
    }
    ASSERT_TRUE(size.ok()) << name;
    auto side = row.find("vllm_size")->begin();
    EXPECT_EQ(size->width, (*side).integer()) << name;
    EXPECT_EQ(size->height, (*++side).integer()) << name;
  }
  EXPECT_EQ(compared, 81U);
}

TEST(ImageSize, ErrorsHaveTheWordsOfTheEngine) {
  const auto text = measure_image(bytes_of("not an image"));
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message,
            "Failed to load image: cannot identify image file <_io.BytesIO object>");
  std::string png = read(kFiles + "exif1.png");
  png.resize(png.size() - 30);
  const auto cut = measure_image(bytes_of(png));
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message, "Failed to load image: image file is truncated");
}

TEST(ImageSize, SurvivesCutAndDamagedFiles) {
  Rng rng(7);
  for (const char* name : {"exif1.png", "exif1.jpg", "animated.webp", "animated.gif",
                           "bmp-core.bmp", "bmp-rgba.bmp"}) {
    const std::string file = read(kFiles + name);
    ASSERT_FALSE(file.empty()) << name;
    for (std::size_t size = 0; size < file.size(); ++size) {
      const std::string cut = file.substr(0, size);
      static_cast<void>(measure_image(bytes_of(cut)));
    }
    for (int round = 0; round < 500; ++round) {
      std::string broken = file;
      for (int i = 0; i < 4; ++i) {
        broken[rng.below(static_cast<std::uint32_t>(broken.size()))] =
            static_cast<char>(rng.next());
      }
      static_cast<void>(measure_image(bytes_of(broken)));
    }
  }
}

}  // namespace
}  // namespace sightline::api
