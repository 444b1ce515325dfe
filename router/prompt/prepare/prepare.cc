// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/prepare.h"

#include <utility>

namespace sightline::prepare {
namespace {

using openai::Modality;

// The message has the words of vLLM 0.32, because clients search for them.
Error too_long(std::size_t tokens_max) {
  return limit_error(ErrorCode::InvalidArgument, "max-model-len",
                     "This model's maximum context length is " + std::to_string(tokens_max) +
                         " tokens. However, your prompt contains more. Please reduce the length "
                         "of the input prompt.",
                     "input_tokens");
}

// A prompt without any known token. With Mismatch the router looks up no block of the prompt.
Prepared unknown(Gap gap, std::vector<ResolvedMedia> media) {
  Prepared prepared{.media = std::move(media), .gap = gap};
  prepared.prompt.certainty = model::Certainty::Mismatch;
  return prepared;
}

std::vector<model::MediaItem> items_of(const std::vector<ResolvedMedia>& media) {
  std::vector<model::MediaItem> items;
  items.reserve(media.size());
  for (const ResolvedMedia& item : media) {
    // Embeddings take the place of an image. Only the engine knows their length.
    const auto modality = item.modality == Modality::Video   ? model::PlaceholderKind::Video
                          : item.modality == Modality::Audio ? model::PlaceholderKind::Audio
                                                             : model::PlaceholderKind::Image;
    items.push_back({modality, item.identifier, item.tokens});
  }
  return items;
}

// Returns whether the template printed exactly the items of the request, in its order.
bool same_order(const std::vector<chat::MediaSlot>& rendered,
                const std::vector<openai::MediaPart>& parts) {
  if (rendered.size() != parts.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (rendered[i].message != parts[i].message || rendered[i].part != parts[i].position) {
      return false;
    }
  }
  return true;
}

Gap gap_of(model::Certainty certainty) {
  switch (certainty) {
    case model::Certainty::Exact:
      return Gap::None;
    case model::Certainty::UnknownMedia:
      return Gap::UnknownMedia;
    case model::Certainty::Mismatch:
      return Gap::PlaceholderMismatch;
  }
  return Gap::PlaceholderMismatch;
}

Result<std::vector<TokenId>> tokens_of(const LoadedModel& model, std::string_view text,
                                       const PromptOptions& options) {
  std::vector<TokenId> tokens;
  if (options.token_cache == nullptr) {
    SL_TRY(model.tokenizer->encode(text, tokens));
    return tokens;
  }
  // With a token cache the limit already holds while tokenizing. It ends before a long text is
  // tokenized to its end.
  const EncodeUntil until{.tokens_max = options.tokens_max, .left = options.left};
  const bool fits = SL_TRY(options.token_cache->encode(text, until, tokens));
  if (!fits) return too_long(options.tokens_max);
  return tokens;
}

Result<Prepared> prepare_chat(const LoadedModel& model, const openai::ApiRequest& request,
                              std::vector<ResolvedMedia> media, const PromptOptions& options) {
  const openai::ChatBody& chat = *request.chat();
  // vLLM uses a second template for requests with tools, if the model has one (model_directory.cc).
  const auto& chosen =
      chat.tools && model.tools_template ? model.tools_template : model.chat_template;
  if (!chosen) return unknown(Gap::NoTemplate, std::move(media));
  const chat::ChatTemplateInput input{.messages = chat.messages,
                                      .tools = chat.tools,
                                      .documents = chat.documents,
                                      .template_kwargs = chat.template_kwargs,
                                      .reasoning_effort = request.reasoning_effort,
                                      .add_generation_prompt = chat.add_generation_prompt,
                                      .continue_final_message = chat.continue_final_message};
  auto rendered = chosen->render(input, options.now);
  if (!rendered.ok()) {
    // An InvalidArgument comes from the template itself, and the engine would report it too. Any
    // other error is a limit of this interpreter. The request is then routed without overlap.
    const bool ours = rendered.error().code != ErrorCode::InvalidArgument;
    if (ours) return unknown(Gap::TemplateUnsupported, std::move(media));
    return std::move(rendered).error();
  }
  const std::vector<TokenId> tokens = SL_TRY(tokens_of(model, rendered->text, options));
  auto expanded = model::expand({.tokens = tokens, .tokens_max = options.tokens_max},
                                items_of(media), model.profile.placeholders);
  if (!expanded.ok()) {
    // expand() reports its own words. The client gets the engine's.
    if (expanded.error().code == ErrorCode::TooLarge) return too_long(options.tokens_max);
    return std::move(expanded).error();
  }
  Prepared prepared{.text = std::move(rendered->text),
                    .prompt = std::move(expanded).value(),
                    .media = std::move(media)};
  prepared.gap = gap_of(prepared.prompt.certainty);
  // A template may reorder or drop items. The n-th placeholder then belongs to another item than
  // expand() assumed.
  if (!same_order(rendered->media, chat.media)) {
    prepared.gap = Gap::PlaceholderMismatch;
    prepared.prompt.exact_tokens = 0;
  }
  return prepared;
}

Result<Prepared> prepare_completion(const LoadedModel& model, const openai::CompletionBody& body,
                                    const PromptOptions& options) {
  Prepared prepared;
  if (const auto* text = std::get_if<std::string_view>(&body.first_prompt)) {
    prepared.prompt.tokens = SL_TRY(tokens_of(model, *text, options));
    prepared.text = *text;
  } else {
    prepared.prompt.tokens = std::get<std::vector<TokenId>>(body.first_prompt);
  }
  prepared.prompt.exact_tokens = prepared.prompt.tokens.size();
  return prepared;
}

}  // namespace

std::string_view name_of(Gap gap) {
  switch (gap) {
    case Gap::None:
      return "none";
    case Gap::UncountedField:
      return "uncounted_field";
    case Gap::NoTemplate:
      return "no_template";
    case Gap::TemplateUnsupported:
      return "template_unsupported";
    case Gap::UnknownMedia:
      return "unknown_media";
    case Gap::PlaceholderMismatch:
      return "placeholder_mismatch";
  }
  return "none";
}

Result<Prepared> prepare_prompt(const LoadedModel& model, const openai::ApiRequest& request,
                                std::vector<ResolvedMedia> media, const PromptOptions& options) {
  // The field changes the prompt, so even the first token would be a guess.
  if (request.uncounted_field) return unknown(Gap::UncountedField, std::move(media));
  auto prepared = request.chat() != nullptr
                      ? prepare_chat(model, request, std::move(media), options)
                      : prepare_completion(model, *request.completion(), options);
  // Completions with token ids have passed no other check of their length.
  if (prepared.ok() && prepared->is_exact() &&
      prepared->prompt.tokens.size() > options.tokens_max) {
    return too_long(options.tokens_max);
  }
  return prepared;
}

}  // namespace sightline::prepare
