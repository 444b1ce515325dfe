// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Renders every conversation of the golden tables with every template and compares with what
// transformers rendered: test_goldens_templates DIRECTORY (holds templates/ and
// templates-reference/).
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/template_goldens.h"

namespace {

using sightline::test::TemplateGoldens;

struct Totals {
  std::size_t passed = 0;
  std::size_t failed = 0;
};

void run_family(const TemplateGoldens& goldens, const std::string& family, Totals& totals) {
  for (const auto& outcome : goldens.run(family)) {
    if (outcome.passes) {
      ++totals.passed;
      continue;
    }
    ++totals.failed;
    std::printf("%s %s\n  expected %s\n  got      %s\n", family.c_str(), outcome.id.c_str(),
                outcome.expected.c_str(), outcome.got.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: test_goldens_templates DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  Totals totals;
  for (const char* folder : {"templates", "templates-reference"}) {
    const TemplateGoldens goldens(root / "templates" / "conversations.jsonl", root / folder);
    for (const std::string& family : goldens.families()) run_family(goldens, family, totals);
  }
  std::printf("%zu passed, %zu failed\n", totals.passed, totals.failed);
  return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
