// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "router/prompt/model/model_directory.h"
#include "simulator/processor/checkpoint.h"

namespace sightline::test {

// A model directory as both sides read it.
struct ModelPair {
  std::string name;
  model::ModelProfile router;
  processor::Checkpoint engine;
};

// All model directories below tests/data/models.
std::vector<ModelPair> all_models();

// The engine's image settings as the router's rule.
model::ImageRule rule_of(const processor::ImageSettings& settings);

}  // namespace sightline::test
