// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/base/check.h"
#include "common/base/rng.h"

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/support/paths.h"

// Method: Qwen3's tokenizer, one thread, warm. First it encodes 2 MB of other text of the same
// kind. Then each iteration encodes the next stretch of a text of 8 MB. English and CJK texts
// consist of words of the vocabulary. For every two of them there is one word made of two. All are
// drawn by Zipf's law, with punctuation. The code is this repository's C++, which repeats. "load"
// reads tokenizer.json.
namespace sightline::tokenizer {
namespace {

constexpr std::size_t kWarmBytes = 2UL << 20U;
constexpr std::size_t kTextBytes = 8UL << 20U;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& model_file() {
  static const std::string text =
      read_file(test::in_build("test-data/tokenizers/qwen3.tokenizer.json"));
  return text;
}

const Tokenizer& qwen3() {
  static const auto tokenizer = Tokenizer::create(model_file());
  return *tokenizer.value();
}

// Returns the vocabulary's tokens for which accept() is true, frequent ones first.
template <class Accept>
std::vector<std::string> vocabulary_words(Accept accept) {
  std::vector<std::string> words;
  for (TokenId id = 0; id < qwen3().vocabulary_size(); ++id) {
    std::string word = qwen3().decode(std::array{id});
    if (accept(word)) words.push_back(std::move(word));
  }
  return words;
}

bool is_english(std::string_view word) {
  return word.size() > 1 && word[0] == ' ' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Returns whether all characters are in U+4000 to U+9FFF.
bool is_ideographic(std::string_view word) {
  if (word.empty() || word.size() % 3 != 0) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(word[i]);
    if (i % 3 == 0 ? byte < 0xE4 || byte > 0xE9 : byte < 0x80 || byte > 0xBF) return false;
  }
  return true;
}

struct Style {
  std::string_view pause;  // after some words
  std::string_view stop;   // after some pauses
  std::string_view paragraph;
};

// Returns the words. After every second one comes a word made of two.
std::vector<std::string> with_compounds(const std::vector<std::string>& words) {
  Rng rng(5);
  const auto count = static_cast<std::uint32_t>(words.size());
  std::vector<std::string> lexicon;
  for (std::size_t i = 0; i < words.size(); ++i) {
    lexicon.push_back(words[i]);
    if (i % 2 == 0) continue;
    const std::string& second = words[rng.below(count)];
    lexicon.push_back(words[rng.below(count)] + second.substr(second[0] == ' ' ? 1 : 0));
  }
  return lexicon;
}

std::string zipf_text(const std::vector<std::string>& words, const Style& style) {
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t rank = 1; rank <= words.size(); ++rank) {
    sums.push_back(sum += 1.0 / static_cast<double>(rank + 2));
  }
  Rng rng(7);
  const auto draw = [&]() -> std::string_view {
    const auto found = std::upper_bound(sums.begin(), sums.end(), rng.unit() * sum);
    return words[static_cast<std::size_t>(found - sums.begin())];
  };
  std::string text;
  while (text.size() < kTextBytes + kWarmBytes) {
    text += draw();
    const std::uint32_t mark = rng.below(100);
    text += mark < 8 ? style.pause : mark < 14 ? style.stop : mark == 14 ? style.paragraph : "";
  }
  return text;
}

std::string english_text() {
  return zipf_text(with_compounds(vocabulary_words(is_english)), {",", ".", ".\n\n"});
}
std::string cjk_text() {
  return zipf_text(with_compounds(vocabulary_words(is_ideographic)),
                   {"\uFF0C", "\u3002", "\u3002\n"});
}

std::string code_text() {
  std::vector<std::filesystem::path> paths;
  for (const char* directory : {"/common", "/router"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(test::in_sources(directory))) {
      if (entry.path().extension() == ".cc" || entry.path().extension() == ".h") {
        paths.push_back(entry.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::string once;
  for (const auto& path : paths) once += read_file(path);
  std::string text;
  while (text.size() < kTextBytes + kWarmBytes) text += once;
  return text;
}

void run(benchmark::State& state, const std::string& text) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<TokenId> ids;
  ids.reserve(text.size());
  // Makes a stretch begin and end at a character.
  const auto edge = [&text](std::size_t at) {
    while ((static_cast<std::uint8_t>(text[at]) & 0xC0U) == 0x80U) ++at;
    return at;
  };
  SL_CHECK(qwen3().encode(std::string_view(text).substr(0, edge(kWarmBytes)), ids).ok());
  std::size_t at = edge(kWarmBytes);
  std::size_t bytes = 0;
  std::size_t tokens = 0;
  for (auto unused : state) {
    if (at + size + 4 > text.size()) at = edge(kWarmBytes);
    const std::size_t end = edge(at + size);
    ids.clear();
    SL_CHECK(qwen3().encode(std::string_view(text).substr(at, end - at), ids).ok());
    bytes += end - at;
    tokens += ids.size();
    at = end;
  }
  state.counters["MB/s"] =
      benchmark::Counter(static_cast<double>(bytes) / 1e6, benchmark::Counter::kIsRate);
  state.counters["bytes/token"] = static_cast<double>(bytes) / static_cast<double>(tokens);
}

void english(benchmark::State& state) {
  static const std::string text = english_text();
  run(state, text);
}
void code(benchmark::State& state) {
  static const std::string text = code_text();
  run(state, text);
}
void cjk(benchmark::State& state) {
  static const std::string text = cjk_text();
  run(state, text);
}

void load(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(Tokenizer::create(model_file()).ok());
}

BENCHMARK(english)->ArgName("bytes")->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
BENCHMARK(code)->ArgName("bytes")->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
BENCHMARK(cjk)->ArgName("bytes")->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
BENCHMARK(load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sightline::tokenizer
