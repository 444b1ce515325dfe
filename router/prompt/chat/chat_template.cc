// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/chat_template.h"

#include <algorithm>

#include "router/prompt/chat/conversation.h"
#include "router/prompt/chat/template_call.h"

namespace sightline::chat {
namespace {

using jinja::Dict;
using jinja::Value;
using Entries = std::vector<Dict::Entry>;

Error invalid(std::string message, const char* param) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), param);
}

// Rejects chat_template_kwargs with the name of an argument of the engine's own call.
Result<Done> check_kwargs(const json::Value& kwargs) {
  if (!kwargs.is(json::Kind::Object)) {
    return invalid("chat_template_kwargs: expected an object", "chat_template_kwargs");
  }
  for (const std::string_view name : {"messages", "conversation", "chat_template", "tokenize"}) {
    if (!kwargs.find(name)) continue;
    return invalid("chat_template_kwargs: '" + std::string(name) + "' cannot be set",
                   "chat_template_kwargs");
  }
  return Done{};
}

// The engine ignores values without a meaning (merge_kwargs of vLLM 0.32).
bool is_unset(const json::Value& value) {
  return value.is(json::Kind::Null) || value.string() == "auto";
}

void add_kwargs(const json::Value& kwargs, Entries& variables) {
  for (const json::Value member : kwargs) {
    if (is_unset(member)) continue;
    variables.emplace_back(Value::text_view(member.name()), Value::from_json(member));
  }
}

void add_reasoning_effort(const ChatTemplateInput& input, Entries& variables) {
  if (!input.reasoning_effort) return;
  variables.emplace_back(Value::text_view("reasoning_effort"),
                         Value::text_view(*input.reasoning_effort));
  // A value in chat_template_kwargs has priority over the one that follows from reasoning_effort.
  const bool is_chosen = input.template_kwargs && input.template_kwargs->find("enable_thinking");
  if (is_chosen) return;
  variables.emplace_back(Value::text_view("enable_thinking"),
                         Value::boolean(*input.reasoning_effort != "none"));
}

// Returns a list that chat_template_kwargs give in place of the request's own field.
std::optional<json::Value> from_kwargs(const ChatTemplateInput& input, std::string_view name) {
  if (!input.template_kwargs) return std::nullopt;
  const auto value = input.template_kwargs->find(name);
  return value && !is_unset(*value) ? value : std::nullopt;
}

Result<Value> tools_of(const ChatTemplateInput& input) {
  if (const auto tools = from_kwargs(input, "tools")) return Value::from_json(*tools);
  return input.tools ? build_tools(*input.tools) : Result<Value>(Value::none());
}

Result<Value> documents_of(const ChatTemplateInput& input) {
  // For documents the request's own field has priority. For tools it is the other way round.
  const auto documents = input.documents ? input.documents : from_kwargs(input, "documents");
  if (!documents) return Value::none();
  bool are_objects = documents->is(json::Kind::Array);
  for (const json::Value document : *documents) {
    are_objects = are_objects && document.is(json::Kind::Object);
  }
  if (!are_objects) {
    return invalid("Documents should be a list of dicts with 'title' and 'text' keys!",
                   "documents");
  }
  return Value::from_json(*documents);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::create(std::string_view source,
                                          const SpecialTokens& special_tokens,
                                          MediaPlaceholders placeholders) {
  ChatTemplate result(std::string(source), SL_TRY(jinja::Template::parse(source)));
  result.format_ = detect_content_format(result.template_);
  result.special_tokens_ = special_tokens;
  result.placeholders_ = std::move(placeholders);
  // vLLM 0.32 searches the source and not the syntax tree.
  result.knows_developer_role_ = source.find("\"developer\"") != std::string_view::npos ||
                                 source.find("'developer'") != std::string_view::npos;
  return result;
}

Result<RenderedPrompt> ChatTemplate::render(const ChatTemplateInput& input, WallTime now) const {
  if (input.continue_final_message && input.add_generation_prompt) {
    return invalid("Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
                   "continue_final_message");
  }
  Conversation conversation =
      SL_TRY(build_conversation(input.messages, MessageRules{format_, placeholders_}));
  // The order of the variables matters, because the last of one name counts.
  TemplateCall call;
  call.messages =
      knows_developer_role_ ? conversation.messages : without_developer_role(conversation.messages);
  call.tools = SL_TRY(tools_of(input));
  call.documents = SL_TRY(documents_of(input));
  call.add_generation_prompt = input.add_generation_prompt;
  call.continue_final_message = input.continue_final_message;
  for (const auto& [name, text] : special_tokens_) {
    if (text) call.variables.emplace_back(Value::text_view(name), Value::text_view(*text));
  }
  if (input.template_kwargs) {
    SL_TRY(check_kwargs(*input.template_kwargs));
    add_kwargs(*input.template_kwargs, call.variables);
  }
  add_reasoning_effort(input, call.variables);
  jinja::RenderOptions options;
  options.now = now;
  auto text = call_template(template_, source_, call, options);
  // Unreadable arguments look like {} to the template. Their error is more helpful than an error of
  // the template.
  if (const auto& error = conversation.arguments.error()) return *error;
  if (!text.ok()) return std::move(text).error();
  return RenderedPrompt{std::move(text).value(), std::move(conversation.media)};
}

}  // namespace sightline::chat
