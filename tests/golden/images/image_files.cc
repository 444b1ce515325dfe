// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/golden/images/image_files.h"

#include <map>

#include "router/prompt/image/header.h"

namespace sightline::golden {
namespace {

// What the reader has to say about a row; empty if it may say anything.
std::string wanted(const json::Value& row) {
  static const std::map<std::string, std::string> kFormats{
      {"JPEG", "jpeg"}, {"MPO", "jpeg"}, {"PNG", "png"}, {"WEBP", "webp"},
      {"GIF", "gif"},   {"BMP", "bmp"},  {"DIB", "bmp"}, {"TIFF", "tiff"}};
  const auto format = kFormats.find(text(row, "format"));
  if (text(row, "vllm") == "ok") {
    if (format == kFormats.end()) return "unknown";
    std::vector<std::string> sides;
    const auto size = row.find("vllm_size");
    for (const json::Value side : *size) sides.emplace_back(side.raw());
    return format->second + " " + sides.at(0) + "x" + sides.at(1);
  }
  const std::string open_error = text(row, "open_error");
  if (open_error == "DecompressionBombError") return "too large";
  return open_error.empty() && format != kFormats.end() ? "" : "refused";
}

}  // namespace

std::string header_seen(ByteView encoded) {
  const image::Header header = image::read_header(encoded);
  if (const auto* known = std::get_if<image::KnownImage>(&header)) {
    return std::string(image::name_of(known->format)) + " " + std::to_string(known->width) + "x" +
           std::to_string(known->height);
  }
  if (std::holds_alternative<image::UnknownImage>(header)) return "unknown";
  return std::get<Error>(header).code == ErrorCode::TooLarge ? "too large" : "refused";
}

Tally check_image_files(const std::filesystem::path& table, const std::filesystem::path& files) {
  Tally tally;
  for (const json::Document& document : rows_of(table)) {
    const json::Value row = document.root();
    const std::string want = wanted(row);
    if (want.empty()) continue;
    const std::string name = text(row, "file");
    const std::string content = content_of(files / name);
    const std::string seen = header_seen(bytes_of(content));
    tally.expect(seen == want, name + ": " + seen + ", want " + want);
  }
  return tally;
}

}  // namespace sightline::golden
