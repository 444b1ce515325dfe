// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Runs a fuzz target over kept inputs: each named file, and each file of the named directories.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/check.h"

#include "tests/fuzz/target.h"

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(path)) return {path};
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run(const std::filesystem::path& file) {
  // If the process stops, the name is the last line of its output.
  std::fprintf(stderr, "%s\n", file.c_str());
  std::ifstream stream(file, std::ios::binary);
  SL_CHECK(stream.good());
  // Exactly the size of the input, to let a sanitizer detect the first byte read behind it.
  const sightline::Bytes bytes{std::istreambuf_iterator<char>(stream), {}};
  sightline::fuzz::run(bytes);
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t inputs = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& file : files_of(arguments[i])) {
      run(file);
      ++inputs;
    }
  }
  SL_CHECK(inputs > 0);
  std::printf("%zu inputs replayed\n", inputs);
  return 0;
}
