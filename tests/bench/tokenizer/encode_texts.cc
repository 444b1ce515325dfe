// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Encodes texts for tests/bench/tokenizer/run, which compares tokenizers:
//   encode_texts speed TOKENIZER_JSON WARM_BYTES SECONDS   prints what peer.py prints
//   encode_texts ids TOKENIZER_JSON                        writes, for each text, a count and ids
//
// Texts come on standard input, each after its size. All numbers are 32-bit little-endian.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/support/thread_time.h"

namespace sightline::tokenizer {
namespace {

static_assert(sizeof(TokenId) == sizeof(std::uint32_t));

bool read_text(std::string& text) {
  std::uint32_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof(size))) return false;
  text.resize(size);
  return static_cast<bool>(std::cin.read(text.data(), size));
}

std::unique_ptr<const Tokenizer> load(const char* path) {
  std::ifstream file(path, std::ios::binary);
  auto tokenizer = Tokenizer::create(std::string(std::istreambuf_iterator<char>(file), {}));
  SL_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

double cpu_seconds() { return std::chrono::duration<double>(test::thread_time()).count(); }

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t pages = 0;
  file >> size >> pages;
  return static_cast<double>(pages) * 4096 / 1e6;
}

double seconds_of(const Tokenizer& tokenizer, const std::string& text) {
  static std::vector<TokenId> ids;
  ids.clear();
  const double start = cpu_seconds();
  SL_CHECK(tokenizer.encode(text, ids).ok());
  return cpu_seconds() - start;
}

int measure_speed(const char* path, std::size_t warm_bytes, double seconds) {
  const double resident = resident_mb();
  const double start = cpu_seconds();
  const auto tokenizer = load(path);
  const double load_seconds = cpu_seconds() - start;
  const double load_mb = resident_mb() - resident;
  std::string text;
  SL_CHECK(read_text(text));
  std::string letters;  // the cost of the first use must not count for the text
  while (letters.size() < text.size()) letters += " a";
  seconds_of(*tokenizer, letters);
  const double cold = static_cast<double>(text.size()) / seconds_of(*tokenizer, text) / 1e6;
  for (std::size_t done = 0; done < warm_bytes && read_text(text); done += text.size()) {
    seconds_of(*tokenizer, text);
  }
  double bytes = 0;
  double spent = 0;
  while (spent < seconds && read_text(text)) {
    spent += seconds_of(*tokenizer, text);
    bytes += static_cast<double>(text.size());
  }
  std::printf(R"({"load_s": %f, "load_mb": %f, "cold": %f, "warm": %f})", load_seconds, load_mb,
              cold, bytes / spent / 1e6);
  return 0;
}

int write_ids(const char* path) {
  const auto tokenizer = load(path);
  std::string text;
  std::vector<TokenId> ids;
  while (read_text(text)) {
    ids.clear();
    SL_CHECK(tokenizer->encode(text, ids).ok());
    const auto count = static_cast<std::uint32_t>(ids.size());
    std::cout.write(reinterpret_cast<const char*>(&count), sizeof(count));
    std::cout.write(reinterpret_cast<const char*>(ids.data()),
                    static_cast<std::streamsize>(ids.size() * sizeof(TokenId)));
  }
  return std::cout.flush() ? 0 : 1;
}

int choose(int count, char** arguments) {
  std::ios::sync_with_stdio(false);
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "speed" && count == 5) {
    return measure_speed(arguments[2], static_cast<std::size_t>(std::atoll(arguments[3])),
                         std::atof(arguments[4]));
  }
  if (what == "ids" && count == 3) return write_ids(arguments[2]);
  std::cerr << "encode_texts is started by tests/bench/tokenizer/run\n";
  return 2;
}

}  // namespace
}  // namespace sightline::tokenizer

int main(int count, char** arguments) { return sightline::tokenizer::choose(count, arguments); }
