// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// Compares the image reader, the token counts and the expansions with the full golden tables.
#include <cstdio>

#include "tests/golden/images/counts.h"
#include "tests/golden/images/image_files.h"
#include "tests/support/paths.h"

namespace sightline::golden {
namespace {

struct FamilyTable {
  std::string table;  // below images/
  std::string model;  // below tests/data/models
  std::string engine_family;
};

const FamilyTable kFamilies[] = {{"qwen2_vl", "qwen2-vl", "qwen2-vl-12845056"},
                                 {"qwen2_vl_max1003520", "tiny-qwen2-vl", "qwen2-vl-1003520"},
                                 {"qwen2_5_vl", "qwen2_5-vl", "qwen2.5-vl"},
                                 {"qwen3_vl", "qwen3-vl", "qwen3-vl"}};

std::unique_ptr<const tokenizer::Tokenizer> tokenizer_of(const std::string& model) {
  const std::filesystem::path built = test::in_build("models");
  auto tokenizer = tokenizer::Tokenizer::create(content_of(built / model / "tokenizer.json"));
  SL_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

int run(const std::filesystem::path& goldens) {
  Tally total = check_image_files(goldens / "image-files" / "expected.jsonl",
                                  goldens / "image-files" / "files");
  for (const FamilyTable& family : kFamilies) {
    const auto profile = profile_of(family.model);
    const auto tokenizer = tokenizer_of(family.model);
    total.add(
        check_expansions(goldens / "images" / (family.table + ".jsonl.gz"), profile, *tokenizer));
    total.add(
        check_engine_counts(goldens / "token-counts-vllm.jsonl", family.engine_family, profile));
  }
  for (const std::string& failure : total.failures) std::printf("%s\n", failure.c_str());
  std::printf("%zu passed, %zu failed\n", total.passed, total.failures.size());
  return total.failures.empty() && total.passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace sightline::golden

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_goldens_images GOLDENS_DIRECTORY\n");
    return 2;
  }
  return sightline::golden::run(argv[1]);
}
