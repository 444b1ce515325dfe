// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/golden/images/table.h"

#include <array>
#include <fstream>
#include <iterator>

#include <zlib.h>

#include "common/base/check.h"

namespace sightline::golden {
namespace {

std::string unpacked(const std::filesystem::path& table) {
  std::string content;
  const gzFile file = gzopen(table.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return content;
  std::array<char, 1U << 16U> buffer{};
  for (int n = 0; (n = gzread(file, buffer.data(), buffer.size())) > 0;) {
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
  gzclose(file);
  return content;
}

}  // namespace

void Tally::expect(bool agrees, const std::string& failure) {
  if (agrees) {
    ++passed;
  } else {
    failures.push_back(failure);
  }
}

void Tally::add(const Tally& other) {
  passed += other.passed;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

std::vector<json::Document> rows_of(const std::filesystem::path& table) {
  std::vector<json::Document> rows;
  const std::string content = unpacked(table);
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    auto row = json::Document::parse(content.substr(at, end - at));
    SL_CHECK(row.ok());
    rows.push_back(std::move(*row));
    at = end + 1;
  }
  return rows;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string text(const json::Value& row, std::string_view name) {
  const auto member = row.find(name);
  return member ? std::string(member->string().value_or("")) : std::string();
}

std::int64_t number(const json::Value& row, std::string_view name) {
  const auto member = row.find(name);
  return member ? member->integer().value_or(0) : 0;
}

}  // namespace sightline::golden
