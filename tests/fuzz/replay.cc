// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Runs a fuzz target over inputs: each named file, and each input of the named .jsonl files, which
// tests/fuzz/inputs writes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/base64.h"
#include "common/base/check.h"
#include "common/base/json.h"

#include "tests/fuzz/target.h"

namespace {

using sightline::Bytes;

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  SL_CHECK(stream.good());
  return {std::istreambuf_iterator<char>(stream), {}};
}

void run(std::string_view name, std::string_view input) {
  // If the process stops, the name is the last line of its output.
  std::fprintf(stderr, "%.*s\n", static_cast<int>(name.size()), name.data());
  // Exactly the size of the input, to let a sanitizer detect the first byte read behind it.
  sightline::fuzz::run(Bytes(input.begin(), input.end()));
}

// One line: {"name": ..., "text": ...} or {"name": ..., "base64": ...}.
void run_line(std::string line) {
  const auto row = sightline::json::Document::parse(std::move(line));
  SL_CHECK(row.ok());
  const auto name = row.value().root().find("name");
  SL_CHECK(name.has_value());
  if (const auto text = row.value().root().find("text")) {
    run(*name->string(), *text->string());
    return;
  }
  const auto encoded = row.value().root().find("base64");
  SL_CHECK(encoded.has_value());
  const auto bytes = sightline::from_base64(*encoded->string());
  SL_CHECK(bytes.has_value());
  run(*name->string(), *bytes);
}

std::size_t run_lines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::size_t inputs = 0;
  for (std::string line; std::getline(stream, line); ++inputs) run_line(line);
  return inputs;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t inputs = 0;
  for (int i = 1; i < count; ++i) {
    const std::filesystem::path file = arguments[i];
    if (file.extension() == ".jsonl") {
      inputs += run_lines(file);
    } else {
      run(file.string(), content_of(file));
      ++inputs;
    }
  }
  SL_CHECK(inputs > 0);
  std::printf("%zu inputs replayed\n", inputs);
  return 0;
}
