// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/prompt_input.h"

#include <utility>

#include "simulator/api/api_error.h"
#include "simulator/api/engine_request.h"
#include "simulator/processor/expansion.h"

namespace sightline::api {
namespace {

using MaybeValue = std::optional<json::Value>;

MaybeValue typed_field(const json::Value& body, std::string_view name, json::Kind kind) {
  const MaybeValue value = body.find(name);
  return value && value->is(kind) ? value : std::nullopt;
}

bool flag(const json::Value& body, std::string_view name, bool fallback) {
  const MaybeValue value = body.find(name);
  return value ? value->boolean().value_or(fallback) : fallback;
}

Result<std::string> render(const json::Value& body, const json::Value& messages,
                           const EngineModel& model, WallTime now) {
  if (!model.chat_template) {
    return client_error(ErrorCode::InvalidArgument,
                        "As of transformers v4.44, default chat template is no longer allowed, so "
                        "you must provide a chat template if the tokenizer does not define one.");
  }
  chat::ChatTemplateInput input{.messages = messages};
  input.tools = typed_field(body, "tools", json::Kind::Array);
  input.documents = typed_field(body, "documents", json::Kind::Array);
  input.template_kwargs = typed_field(body, "chat_template_kwargs", json::Kind::Object);
  const MaybeValue effort = body.find("reasoning_effort");
  if (effort) input.reasoning_effort = effort->string();
  input.add_generation_prompt = flag(body, "add_generation_prompt", true);
  input.continue_final_message = flag(body, "continue_final_message", false);
  return SL_TRY(model.chat_template->render(input, now)).text;
}

// The caller checks the length, because it knows how long the answer may be.
Result<PromptInput> expand_media(const std::vector<TokenId>& rendered,
                                 std::vector<MediaInput> inputs,
                                 const processor::Checkpoint& checkpoint) {
  std::vector<TokenId> placeholders;
  if (checkpoint.image_token) placeholders.push_back(*checkpoint.image_token);
  if (checkpoint.video_token) placeholders.push_back(*checkpoint.video_token);
  // Images have tokens only in models whose placeholder token is known.
  SL_CHECK(inputs.empty() || checkpoint.image_token);
  std::vector<processor::Item> items;
  for (const MediaInput& input : inputs) {
    items.push_back({.placeholder = *checkpoint.image_token, .tokens = input.tokens});
  }
  auto expanded = SL_TRY(processor::expand(rendered, items, placeholders));
  PromptInput input{.tokens = std::move(expanded.tokens), .media = {}};
  for (const processor::Run& run : expanded.runs) {
    input.media.push_back({std::move(inputs[run.item].identifier), run.offset, run.length});
  }
  return input;
}

Result<PromptInput> read_ids(const json::Value& list, const EngineModel& model) {
  PromptInput input;
  const auto vocabulary = static_cast<std::int64_t>(model.tokenizer->vocabulary_size());
  for (const json::Value element : list) {
    const auto id = element.integer();
    if (!id || *id < 0 || *id >= vocabulary) {
      return client_error(ErrorCode::InvalidArgument,
                          "Token id " + std::string(element.raw()) + " is out of vocabulary");
    }
    input.tokens.push_back(static_cast<TokenId>(*id));
  }
  return input;
}

Result<PromptInput> read_one(const json::Value& prompt, const EngineModel& model) {
  if (prompt.is(json::Kind::Array)) return read_ids(prompt, model);
  PromptInput input;
  SL_TRY(model.tokenizer->encode(prompt.string().value_or(""), input.tokens));
  return input;
}

bool is_batch(const json::Value& prompt) {
  if (!prompt.is(json::Kind::Array) || prompt.size() == 0) return false;
  // A list of numbers is one prompt of token ids. Any other list has one prompt per element.
  return !(*prompt.begin()).is(json::Kind::Number);
}

}  // namespace

std::size_t PromptInput::image_tokens() const {
  std::size_t sum = 0;
  for (const core::MediaRange& range : media) sum += range.length;
  return sum;
}

Result<PromptInput> read_chat_prompt(const json::Value& body, const EngineModel& model,
                                     ProcessorCache& cache, WallTime now) {
  const json::Value messages = SL_TRY(require_field(body, "messages"));
  if (!messages.is(json::Kind::Array)) {
    return schema_error({.type = "list_type",
                         .where = "body.messages",
                         .message = "Input should be a valid list",
                         .input = std::string(messages.raw().substr(0, 64))});
  }
  auto inputs = SL_TRY(read_media(messages, model.checkpoint, cache));
  const std::string text = SL_TRY(render(body, messages, model, now));
  std::vector<TokenId> rendered;
  SL_TRY(model.tokenizer->encode(text, rendered));
  return expand_media(rendered, std::move(inputs), model.checkpoint);
}

Result<std::vector<PromptInput>> read_text_prompts(const json::Value& body,
                                                   const EngineModel& model) {
  const json::Value prompt = SL_TRY(require_field(body, "prompt"));
  std::vector<PromptInput> prompts;
  if (!is_batch(prompt)) {
    prompts.push_back(SL_TRY(read_one(prompt, model)));
  } else if (prompt.size() > kPromptsMax) {
    return client_error(ErrorCode::InvalidArgument,
                        "more than " + std::to_string(kPromptsMax) + " prompts in one request");
  } else {
    for (const json::Value one : prompt) prompts.push_back(SL_TRY(read_one(one, model)));
  }
  for (const PromptInput& input : prompts) {
    if (!input.tokens.empty()) continue;
    return client_error(ErrorCode::InvalidArgument, "The decoder prompt cannot be empty");
  }
  return prompts;
}

}  // namespace sightline::api
