// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/openai/request.h"
#include "router/prompt/model/expand.h"
#include "router/prompt/prepare/model.h"
#include "router/prompt/prepare/resolve_media.h"
#include "router/prompt/prepare/token_cache.h"

namespace sightline::prepare {

// The reason why some or all blocks of a prompt are unknown. The names are the "reason" of logs and
// of the metric sightline_unrouted_overlap_total.
enum class Gap : std::uint8_t {
  // Every token is known.
  None,
  // A field of the request changes the prompt in a way that the router does not compute.
  UncountedField,
  // The model directory has no chat template.
  NoTemplate,
  // The template uses a function that the interpreter does not have.
  TemplateUnsupported,
  // The number of tokens of an item is unknown. Overlap counts only before this item.
  UnknownMedia,
  // Placeholders and items do not match. An example is a placeholder in the user's text.
  PlaceholderMismatch,
};
// The name in snake case, for example "uncounted_field". `Gap::None` has the name `none`.
std::string_view name_of(Gap gap);

// The routing view of a request: its tokens, its media, and the number of certain tokens.
struct Prepared {
  // The rendered prompt. Empty for prompts of token ids, and if the tokens are unknown.
  std::string text;
  // Its tokens may be empty if `gap` is not `None`.
  model::Prompt prompt;
  // The items of the request, in its order.
  std::vector<ResolvedMedia> media;
  Gap gap = Gap::None;

  // The number of leading tokens whose blocks may be looked up.
  [[nodiscard]] std::size_t known_tokens() const { return prompt.exact_tokens; }
  // Memory of text and tokens, in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return text.capacity() + prompt.tokens.capacity() * sizeof(TokenId);
  }
  // True if known_tokens() is the whole prompt. The engine's token counts must then equal the
  // router's.
  [[nodiscard]] bool is_exact() const { return gap == Gap::None; }
};

// The limits and the environment of one preparation.
struct PromptOptions {
  // A cache for this model's tokenizer. If null, the whole text is tokenized.
  TokenCache* token_cache = nullptr;
  // The most tokens that a prompt may have.
  std::size_t tokens_max = 1U << 22U;
  // The time for templates that print the date.
  WallTime now{};
  // Stops the work when the client has left.
  std::stop_token left{};
};

// Renders the template, tokenizes the text and expands the media. Blocking work, linear in the
// length of the text. It does not tokenize more text than it needs to see that the prompt is too
// long.
//
// Errors blamed on the client, where the engine would reject the request as well: an error of the
// template, or a prompt above tokens_max. Cancelled, if the client has left. A part that the router
// cannot compute is not an error, but a Gap.
Result<Prepared> prepare_prompt(const LoadedModel& model, const openai::ApiRequest& request,
                                std::vector<ResolvedMedia> media, const PromptOptions& options);

}  // namespace sightline::prepare
