// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// Compares the ids of both Qwen tokenizers with the full golden tables.
#include <array>
#include <cstdio>
#include <map>

#include <openssl/sha.h>

#include "common/base/bytes.h"
#include "common/base/check.h"

#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/golden/images/table.h"
#include "tests/support/paths.h"

namespace sightline::golden {
namespace {

using Texts = std::map<std::string, std::string>;  // by id

// SHA-256 of the ids as little-endian u32.
std::string digest_of(const std::vector<TokenId>& ids) {
  Bytes bytes;
  for (const TokenId id : ids) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(id >> shift));
    }
  }
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  return to_hex(digest);
}

Tally check_family(const std::filesystem::path& tables, const std::string& family,
                   const Texts& texts) {
  const std::filesystem::path built = test::in_build("test-data/tokenizers");
  const auto tokenizer =
      tokenizer::Tokenizer::create(content_of(built / (family + ".tokenizer.json")));
  SL_CHECK(tokenizer.ok());
  Tally tally;
  for (const json::Document& row : rows_of(tables / (family + ".jsonl.gz"))) {
    const std::string id = text(row.root(), "id");
    const auto found = texts.find(id);
    std::vector<TokenId> ids;
    const bool agrees = found != texts.end() && (*tokenizer)->encode(found->second, ids).ok() &&
                        static_cast<std::int64_t>(ids.size()) == number(row.root(), "n") &&
                        digest_of(ids) == text(row.root(), "sha");
    tally.expect(agrees, family + " " + id);
  }
  return tally;
}

int run(const std::filesystem::path& goldens) {
  const std::filesystem::path tables = goldens / "tokenizers";
  Texts texts;
  for (const json::Document& row : rows_of(tables / "texts.jsonl.gz")) {
    texts[text(row.root(), "id")] = text(row.root(), "text");
  }
  bool passed = true;
  for (const char* family : {"qwen3", "qwen2_5"}) {
    const Tally tally = check_family(tables, family, texts);
    for (const std::string& failure : tally.failures) std::printf("%s\n", failure.c_str());
    std::printf("%s: %zu passed, %zu failed\n", family, tally.passed, tally.failures.size());
    passed = passed && tally.failures.empty() && tally.passed > 0;
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace sightline::golden

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_goldens_tokenizers GOLDENS_DIRECTORY\n");
    return 2;
  }
  return sightline::golden::run(argv[1]);
}
