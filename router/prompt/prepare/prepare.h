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

// Why the blocks of a prompt are not known, wholly or behind a certain token. The names are the
// "reason" of logs and of sightline_unrouted_overlap_total.
enum class Gap : std::uint8_t {
  None,                 // every token is known
  UncountedField,       // a request field changes the prompt in a way that is not computed
  NoTemplate,           // the model directory has no chat template
  TemplateUnsupported,  // the template asks for something the interpreter does not have
  UnknownMedia,         // an item's length is not known: nothing is claimed from it on
  PlaceholderMismatch,  // placeholders and items do not match, such as placeholders in user text
};
std::string_view name_of(Gap gap);

// The routing view of a request.
struct Prepared {
  std::string text;      // the rendered prompt; empty when nothing is known or for token ids
  model::Prompt prompt;  // tokens may be empty when nothing is known
  std::vector<ResolvedMedia> media;
  Gap gap = Gap::None;

  // Tokens whose blocks may be looked up.
  [[nodiscard]] std::size_t known_tokens() const { return prompt.exact_tokens; }
  // Memory of text and tokens.
  [[nodiscard]] std::size_t bytes() const {
    return text.capacity() + prompt.tokens.capacity() * sizeof(TokenId);
  }
  // True if known_tokens is the whole prompt: the engine's counts must then equal ours.
  [[nodiscard]] bool is_exact() const { return gap == Gap::None; }
};

struct PromptOptions {
  TokenCache* token_cache = nullptr;   // of the model's tokenizer; none: all text is tokenized
  std::size_t tokens_max = 1U << 22U;  // prompt tokens a request may have
  WallTime now{};                      // for templates that print the date
  std::stop_token left{};              // nobody waits for the prompt any more
};

// Template, tokenizer and expansion. Blocking work, linear in the text, of which no more is
// tokenized than what tells that it is too long.
// Errors: the client's, where the engine would refuse as well (template error, prompt too long),
// and Cancelled.
Result<Prepared> prepare_prompt(const LoadedModel& model, const openai::ApiRequest& request,
                                std::vector<ResolvedMedia> media, const PromptOptions& options);

}  // namespace sightline::prepare
