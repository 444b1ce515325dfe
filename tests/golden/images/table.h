// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"

// Reading golden tables and counting what agrees with them.
namespace sightline::golden {

// What a comparison with a table gave.
struct Tally {
  std::size_t passed = 0;
  std::vector<std::string> failures;  // one line each

  // Counts one case.
  void expect(bool agrees, const std::string& failure);
  void add(const Tally& other);
};

// The rows of a table of JSON lines, gzip-compressed or plain. A table that cannot be read gives
// no rows, and a row that is no JSON stops the process.
std::vector<json::Document> rows_of(const std::filesystem::path& table);

std::string content_of(const std::filesystem::path& file);

// A member's string or number; empty and 0 when it is absent or of another kind.
std::string text(const json::Value& row, std::string_view name);
std::int64_t number(const json::Value& row, std::string_view name);

}  // namespace sightline::golden
