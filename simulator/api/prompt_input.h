// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/result.h"

#include "simulator/api/media_input.h"
#include "simulator/api/simulated_model.h"
#include "simulator/core/prefix_cache.h"

namespace sightline::api {

// A prompt as the engine core gets it.
struct PromptInput {
  std::vector<TokenId> tokens;
  std::vector<core::MediaRange> media;
  // The sum of the lengths of the media ranges.
  [[nodiscard]] std::size_t image_tokens() const;
};

// Returns the prompt of a body with `messages`. It reads the media, renders the template, tokenizes
// the text and expands the placeholders. `now` is the date for templates. Errors: as vLLM answers.
Result<PromptInput> read_chat_prompt(const json::Value& body, const EngineModel& model,
                                     ProcessorCache& cache, WallTime now);

// Returns the prompts of a completion body, or of a /tokenize body with `prompt`. The prompt is a
// text, token ids, or a list of either.
Result<std::vector<PromptInput>> read_text_prompts(const json::Value& body,
                                                   const EngineModel& model);

// The most prompts of one completion request.
inline constexpr std::size_t kPromptsMax = 1024;

}  // namespace sightline::api
