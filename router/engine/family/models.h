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

// Whether an engine sleeps: the "is_sleeping" of the object that the answer of this path is.
// Errors: Corrupt.
Result<bool> parse_sleep(std::string body, const std::string& path);

}  // namespace sightline::family
