// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace sightline::processor {

// A media item of a request.
struct Item {
  TokenId placeholder = 0;  // what the chat template wrote for it
  std::size_t tokens = 0;
};

// Where an item stands in the prompt.
struct Run {
  std::size_t item = 0;  // its place among the items given
  std::size_t offset = 0;
  std::size_t length = 0;
};

struct ExpandedPrompt {
  std::vector<TokenId> tokens;
  std::vector<Run> runs;  // in order of offset
};

// The prompt replacements of vLLM 0.32 for the Qwen families: a placeholder is repeated as often as
// the first item of its kind that has none yet has tokens. placeholders are all that the model
// knows. Error: InvalidArgument when a placeholder or an item is left over.
Result<ExpandedPrompt> expand(const std::vector<TokenId>& rendered, const std::vector<Item>& items,
                              const std::vector<TokenId>& placeholders);

}  // namespace sightline::processor
