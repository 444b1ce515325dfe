// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"

namespace sightline::family {

// Parses the answer of GET /v1/models, OpenAI's list as all engines write it. An entry with a
// parent is a LoRA adapter. Error: Corrupt, also for more than kModelsMax entries or an entry
// without a usable id.
Result<std::vector<ServedModel>> parse_models(std::string body);

// Parses the answer of an engine's sleep endpoint, and returns its member "is_sleeping". `path`
// names the endpoint in errors. Error: Corrupt.
Result<bool> parse_sleep(std::string body, const std::string& path);

}  // namespace sightline::family
