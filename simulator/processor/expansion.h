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
  // The token that the chat template wrote for it.
  TokenId placeholder = 0;
  // The tokens that it has in the engine's prompt.
  std::size_t tokens = 0;
};

// The position of an item in the prompt, in tokens.
struct Run {
  // Index in the list of items.
  std::size_t item = 0;
  std::size_t offset = 0;
  std::size_t length = 0;
};

// The prompt that the engine computes with.
struct ExpandedPrompt {
  std::vector<TokenId> tokens;
  // In the order of their offsets.
  std::vector<Run> runs;
};

// The prompt replacements of vLLM 0.32 for the Qwen families. Each placeholder is repeated once per
// token of its item, which is the next unused item of its kind. `placeholders` are all placeholder
// tokens of the model. Error: InvalidArgument if a placeholder or an item is left over.
//
// It shares no code with router/prompt/model, because the simulator must not repeat an error of the
// router.
Result<ExpandedPrompt> expand(const std::vector<TokenId>& rendered, const std::vector<Item>& items,
                              const std::vector<TokenId>& placeholders);

}  // namespace sightline::processor
