// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/integration/expansion/models.h"

#include <algorithm>
#include <filesystem>

#include "common/base/check.h"

#include "tests/golden/images/counts.h"
#include "tests/support/paths.h"

namespace sightline::test {

std::vector<ModelPair> all_models() {
  std::vector<ModelPair> models;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::in_sources("tests/data/models"))) {
    if (!entry.is_directory()) continue;
    auto engine = processor::read_checkpoint(entry.path().string());
    SL_CHECK(engine.ok());
    const std::string name = entry.path().filename().string();
    models.push_back({name, golden::profile_of(name), *std::move(engine)});
  }
  std::sort(models.begin(), models.end(),
            [](const ModelPair& a, const ModelPair& b) { return a.name < b.name; });
  return models;
}

model::ImageRule rule_of(const processor::ImageSettings& settings) {
  return {.patch = static_cast<std::uint32_t>(settings.patch_size),
          .merge = static_cast<std::uint32_t>(settings.merge_size),
          .pixels_min = settings.shortest_edge,
          .pixels_max = settings.longest_edge};
}

}  // namespace sightline::test
