// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace sightline::test {

// Tables of chat templates, and of transformers' output for conversations with them
// (tests/data/templates/README.md). Files that are missing or broken stop the process.
class TemplateGoldens {
 public:
  // One comparison. Errors are written as "error: …".
  struct Outcome {
    std::string id;
    std::string expected;
    std::string got;
    bool passes = false;
  };

  // `folder` holds families.json, NAME.jinja and NAME.jsonl.
  TemplateGoldens(const std::filesystem::path& conversations, std::filesystem::path folder);

  [[nodiscard]] std::vector<std::string> families() const;
  // Every row of the family's table, and its content format.
  [[nodiscard]] std::vector<Outcome> run(const std::string& family) const;
  // A copy of the template's source.
  [[nodiscard]] std::string source(const std::string& family) const;

 private:
  std::filesystem::path folder_;
  json::Document families_;
  std::map<std::string, json::Document> conversations_;  // by id
};

}  // namespace sightline::test
