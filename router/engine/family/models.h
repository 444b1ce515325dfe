// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"

namespace sightline::family {

// GET /v1/models, OpenAI's list as all engines write it. An entry with a parent is a LoRA adapter.
// Errors: Corrupt.
Result<std::vector<ServedModel>> parse_models(std::string body);

}  // namespace sightline::family
