// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Encodes any text with a published tokenizer, and compares with the naive one.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "tests/fuzz/target.h"
#include "tests/fuzz/tokenizer_reading.h"
#include "tests/support/paths.h"

namespace sightline::fuzz {
namespace {

struct Both {
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<const tokenizer::NaiveTokenizer> naive;
};

Both read_both() {
  std::ifstream file(test::in_build("test-data/tokenizers/qwen3.tokenizer.json"));
  SL_CHECK(file.good());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto tokenizer = tokenizer::Tokenizer::create(text);
  SL_CHECK(tokenizer.ok());
  return {std::move(tokenizer).value(), std::make_unique<const tokenizer::NaiveTokenizer>(text)};
}

// Reads before main(). It takes seconds, which must not count for the first input.
const Both both = read_both();

}  // namespace

void run(ByteView input) {
  const std::string text(text_of(input));
  check_encoding(*both.tokenizer, *both.naive, text);
}

}  // namespace sightline::fuzz
