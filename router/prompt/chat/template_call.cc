// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/template_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "router/prompt/template/python/text.h"

namespace sightline::chat {
namespace {

using jinja::Dict;
using jinja::Value;

// The mark at which the text is cut. transformers appends this text to the final message before
// rendering.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kBareMark = kMark.substr(0, kMark.size() - 1);

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), "messages");
}

Value replaced(const Dict& dict, std::string_view key, Value value) {
  std::vector<Dict::Entry> entries(dict.entries().begin(), dict.entries().end());
  entries.emplace_back(Value::text(std::string(key)), std::move(value));
  return Value::dict(Dict(std::move(entries)));
}

// Reasoning may be under three names. The first one with a value counts. The value is then written
// under the names that templates read.
Value with_reasoning_names(const Value& message) {
  const Dict& dict = *message.as_dict();
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* reasoning = dict.find(name);
    if (reasoning == nullptr || reasoning->is_none()) continue;
    std::vector<Dict::Entry> entries;
    entries.emplace_back(Value::text("thinking"), *reasoning);
    entries.insert(entries.end(), dict.entries().begin(), dict.entries().end());
    entries.emplace_back(Value::text("reasoning_content"), *reasoning);
    return Value::dict(Dict(std::move(entries)));
  }
  return message;
}

Value marked(std::string_view text) { return Value::text(std::string(text).append(kMark)); }

// The text to continue, and the message with the mark at its end.
struct FinalMessage {
  std::string text;
  Value message;
};

Result<FinalMessage> mark_parts(const Dict& message, std::span<const Value> parts) {
  std::vector<Value> marked_parts(parts.begin(), parts.end());
  // Only the last part with a text can be continued.
  for (auto part = marked_parts.rbegin(); part != marked_parts.rend(); ++part) {
    const Dict* dict = part->as_dict();
    const Value* text = dict == nullptr ? nullptr : dict->find("text");
    if (text == nullptr) continue;
    if (!text->as_text()) return invalid("messages: a part's text must be a string");
    FinalMessage result{std::string(*text->as_text()), {}};
    *part = replaced(*dict, "text", marked(result.text));
    result.message = replaced(message, "content", Value::list(std::move(marked_parts)));
    return result;
  }
  return invalid(
      "continue_final_message is set but we could not find any text to continue in the final "
      "message!");
}

Result<FinalMessage> mark(const Value& message, std::string_view source) {
  const Dict& dict = *message.as_dict();
  const Value* content = dict.find("content");
  if (content == nullptr || content->is_none()) {
    return invalid(
        "continue_final_message is set but the final message has no \"content\" to continue!");
  }
  // transformers makes the same check on the source.
  if (source.find("content") == std::string_view::npos) {
    return invalid(
        "continue_final_message is set to \"content\" but this is not an accepted field in the "
        "chat_template");
  }
  if (const auto parts = content->as_items()) return mark_parts(dict, *parts);
  const auto text = content->as_text();
  if (!text) return invalid("messages: the final message's content must be a string or a list");
  return FinalMessage{std::string(*text), replaced(dict, "content", marked(*text))};
}

Result<std::string> cut_at_mark(std::string rendered, std::string_view final_text) {
  const std::string_view continued = python::strip(final_text, python::Side::Both);
  // The last occurrence counts, because an earlier message of the client may contain the mark.
  const std::size_t at = rendered.rfind(kBareMark);
  if (at == std::string::npos || rendered.find(continued) == std::string::npos) {
    return invalid(
        "continue_final_message is set but the final message does not appear in the chat after "
        "applying the chat template! This can happen if the chat template deletes portions of the "
        "final message. Please verify the chat template and final message in your chat to ensure "
        "they are compatible.");
  }
  const bool keeps_spaces = rendered.compare(at, kMark.size(), kMark) == 0;
  rendered.resize(at);
  // A template may trim the content that it prints, and the mark has lost its blank then. The text
  // to continue is trimmed in the same way.
  if (!keeps_spaces) rendered.resize(python::strip(rendered, python::Side::Right).size());
  return rendered;
}

}  // namespace

Result<std::string> call_template(const jinja::Template& chat_template, std::string_view source,
                                  const TemplateCall& call, const jinja::RenderOptions& options) {
  const auto given = call.messages.as_items();
  const auto is_dict = [](const Value& item) { return item.as_dict() != nullptr; };
  if (!given || !std::all_of(given->begin(), given->end(), is_dict)) {
    return invalid("messages: every message must be an object");
  }
  std::vector<Value> messages;
  messages.reserve(given->size());
  for (const Value& message : *given) messages.push_back(with_reasoning_names(message));
  std::string final_text;
  if (call.continue_final_message) {
    if (messages.empty()) {
      return invalid("continue_final_message is set but the conversation is empty!");
    }
    FinalMessage last = SL_TRY(mark(messages.back(), source));
    final_text = std::move(last.text);
    messages.back() = std::move(last.message);
  }
  std::vector<Dict::Entry> variables = call.variables;
  const auto add = [&](const char* name, Value value) {
    variables.emplace_back(Value::text_view(name), std::move(value));
  };
  // These names come last. No entry of chat_template_kwargs can replace them.
  add("messages", Value::list(std::move(messages)));
  add("tools", call.tools);
  add("documents", call.documents);
  add("add_generation_prompt", Value::boolean(call.add_generation_prompt));
  const Value all = Value::dict(Dict(std::move(variables)));
  std::string rendered = SL_TRY(chat_template.render(all, options));
  if (!call.continue_final_message) return rendered;
  return cut_at_mark(std::move(rendered), final_text);
}

}  // namespace sightline::chat
