// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/tokenizer/fixture.h"

#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "common/base/check.h"

namespace sightline::tokenizer {

std::string read_test_file(std::string_view name) {
  std::ifstream file(std::string(SL_BINARY_DIR "/test-data/tokenizers/").append(name),
                     std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

const Tokenizer& test_tokenizer(std::string_view family) {
  static std::map<std::string, std::unique_ptr<const Tokenizer>, std::less<>> loaded;
  auto found = loaded.find(family);
  if (found == loaded.end()) {
    auto made = Tokenizer::create(read_test_file(std::string(family) + ".tokenizer.json"));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    SL_CHECK(made.ok());
    found = loaded.emplace(family, std::move(made).value()).first;
  }
  return *found->second;
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  const auto done = tokenizer.encode(text, ids);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  return ids;
}

}  // namespace sightline::tokenizer
