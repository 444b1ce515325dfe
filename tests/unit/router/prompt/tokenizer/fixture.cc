// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/prompt/tokenizer/fixture.h"

#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>
#include <unicode/unistr.h>

#include "common/base/check.h"
#include "common/base/json.h"

#include "router/prompt/tokenizer/model_file.h"
#include "tests/support/paths.h"

namespace sightline::tokenizer {

std::string read_test_file(std::string_view name) {
  std::ifstream file(test::in_build("test-data/tokenizers/") + std::string(name), std::ios::binary);
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

std::string small_model_file() {
  std::string vocab;
  std::int32_t next = 256;
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    const bool same = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    std::string name;
    icu::UnicodeString(same ? byte : next++).toUTF8String(name);
    vocab += json::to_quoted(name) + ":" + std::to_string(byte) + ",";
  }
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":257,)"
         R"("content":"<x>","single_word":false,"lstrip":false,"rstrip":false,)"
         R"("normalized":false,"special":true}],"normalizer":{"type":"NFC"},"pre_tokenizer":{)"
         R"("type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" +
         json::to_quoted(kQwenPattern) +
         R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel",)"
         R"("add_prefix_space":false,"trim_offsets":false,"use_regex":false}]},)"
         R"("post_processor":null,"decoder":null,"model":{"type":"BPE","dropout":null,)"
         R"("unk_token":null,"byte_fallback":false,"vocab":{)" +
         vocab + R"("ab":256},"merges":["a b"]}})";
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  const auto done = tokenizer.encode(text, ids);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  return ids;
}

}  // namespace sightline::tokenizer
