// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/conversation.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sightline::chat {
namespace {

using jinja::Dict;
using jinja::Value;
using Entries = std::vector<Dict::Entry>;

Error invalid(std::string message, const char* param = "messages") {
  return client_error(ErrorCode::InvalidArgument, std::move(message), param);
}

void add(Entries& entries, std::string_view name, Value value) {
  entries.emplace_back(Value::text_view(name), std::move(value));
}

bool is_given(const std::optional<json::Value>& value) {
  return value && !value->is(json::Kind::Null);
}

// The members of an object, with the names in `first` at the front. The engine's request schema
// reorders typed dicts in the same way, and templates print dicts in their order. The value of
// `replaced` is left for the caller.
Entries reordered(const json::Value& object, std::initializer_list<std::string_view> first,
                  std::string_view replaced) {
  Entries entries;
  for (const std::string_view name : first) {
    const auto member = object.find(name);
    if (!member) continue;
    add(entries, name, name == replaced ? Value::none() : Value::from_json(*member));
  }
  for (const json::Value member : object) {
    const bool is_first = std::find(first.begin(), first.end(), member.name()) != first.end();
    if (!is_first) add(entries, member.name(), Value::from_json(member));
  }
  return entries;
}

// Returns arguments as an object, or {} for arguments that are no object.
Value arguments_of(const std::optional<json::Value>& given, const Conversation& conversation) {
  if (!given) return Value::dict(Dict());
  if (given->is(json::Kind::Object)) return Value::from_json(*given);
  if (!given->is(json::Kind::String)) return Value::dict(Dict());
  return conversation.arguments.dict_of(*given->string());
}

Result<Value> tool_call_of(const json::Value& call, const Conversation& conversation) {
  if (!call.is(json::Kind::Object)) return invalid("assistant tool_calls entries must be objects.");
  const auto function = call.find("function");
  const auto type = call.find("type");
  const bool is_function = !type || type->string() == "function";
  if (!is_function || !function || !function->is(json::Kind::Object)) {
    return invalid("chat completions only support assistant tool_calls of type 'function'.");
  }
  // The engine parses arguments from text into an object, because templates expect one.
  Entries function_entries = reordered(*function, {"arguments", "name"}, "arguments");
  add(function_entries, "arguments", arguments_of(function->find("arguments"), conversation));
  Entries entries = reordered(call, {"id", "function", "type"}, "function");
  add(entries, "function", Value::dict(Dict(std::move(function_entries))));
  return Value::dict(Dict(std::move(entries)));
}

Result<Done> add_assistant_fields(const json::Value& message, Entries& entries,
                                  const Conversation& conversation) {
  const auto calls = message.find("tool_calls");
  if (is_given(calls)) {
    if (!calls->is(json::Kind::Array)) return invalid("messages: 'tool_calls' must be an array");
    std::vector<Value> values;
    for (const json::Value call : *calls) {
      values.push_back(SL_TRY(tool_call_of(call, conversation)));
    }
    // An empty list is dropped. Otherwise a template could take its branch for tool calls.
    if (!values.empty()) add(entries, "tool_calls", Value::list(std::move(values)));
  }
  // Clients use either name. Templates read either name too.
  auto reasoning = message.find("reasoning");
  if (!is_given(reasoning)) reasoning = message.find("reasoning_content");
  if (is_given(reasoning)) {
    const Value value = Value::from_json(*reasoning);
    add(entries, "reasoning", value);
    add(entries, "reasoning_content", value);
  }
  return Done{};
}

Result<Value> message_of(const json::Value& message, const MessageRules& rules,
                         Conversation& conversation, std::size_t index) {
  const auto role_value = message.find("role");
  if (!message.is(json::Kind::Object) || !role_value || !role_value->is(json::Kind::String)) {
    return invalid("messages: every message must be an object with a 'role'");
  }
  const std::string_view role = *role_value->string();
  ChatContent content = SL_TRY(parse_content(message.find("content"), role, rules));
  for (MediaSlot slot : content.media) {
    slot.message = index;
    conversation.media.push_back(slot);
  }
  Entries entries;
  add(entries, "role", Value::text_view(role));
  add(entries, "content", std::move(content.value));
  if (role == "assistant") SL_TRY(add_assistant_fields(message, entries, conversation));
  // The engine keeps an id of a tool's answer only.
  if (const auto id = message.find("tool_call_id"); id && role == "tool") {
    add(entries, "tool_call_id", Value::from_json(*id));
  }
  for (const std::string_view name : {"name", "task"}) {
    const auto member = message.find(name);
    if (member && member->is(json::Kind::String)) {
      add(entries, name, Value::text_view(*member->string()));
    }
  }
  if (role == "developer") {
    const auto tools = message.find("tools");
    add(entries, "tools", tools ? Value::from_json(*tools) : Value::none());
  }
  return Value::dict(Dict(std::move(entries)));
}

bool has_role(const Value& message, std::string_view role) {
  return message.as_dict()->find("role")->as_text() == role;
}

// The text of a system message. Its parts are joined by line breaks.
std::string text_of_content(const Value& message) {
  const Value& content = *message.as_dict()->find("content");
  if (const auto text = content.as_text()) return std::string(*text);
  std::string out;
  bool is_first = true;
  const auto parts = content.as_items().value_or(std::span<const Value>());
  for (const Value& part : parts) {
    const Value* text = part.as_dict() == nullptr ? nullptr : part.as_dict()->find("text");
    if (text == nullptr || !text->as_text()) continue;
    if (!is_first) out += '\n';
    is_first = false;
    out += *text->as_text();
  }
  return out;
}

Value as_system(const Value& message) {
  Entries entries;
  for (const Dict::Entry& entry : message.as_dict()->entries()) {
    // "tools" is a field of the role "developer" only.
    if (entry.first.as_text() == "tools") continue;
    entries.push_back(entry);
  }
  add(entries, "role", Value::text_view("system"));
  return Value::dict(Dict(std::move(entries)));
}

Result<Value> function_of(const json::Value& tool) {
  const auto function = tool.find("function");
  if (!function || !function->is(json::Kind::Object)) {
    return invalid("tools: every tool needs a 'function' object", "tools");
  }
  const auto name = function->find("name");
  if (!name || !name->is(json::Kind::String)) {
    return invalid("tools: every function needs a 'name'", "tools");
  }
  Entries entries;
  add(entries, "name", Value::text_view(*name->string()));
  // The engine's schema writes null for these fields if the client left them out.
  for (const std::string_view field : {"description", "parameters"}) {
    const auto member = function->find(field);
    add(entries, field, member ? Value::from_json(*member) : Value::none());
  }
  if (const auto strict = function->find("strict"); is_given(strict)) {
    add(entries, "strict", Value::from_json(*strict));
  }
  // The field may be in the function or in the tool.
  auto deferred = function->find("defer_loading");
  if (!is_given(deferred)) deferred = tool.find("defer_loading");
  if (is_given(deferred)) add(entries, "defer_loading", Value::from_json(*deferred));
  return Value::dict(Dict(std::move(entries)));
}

}  // namespace

Result<Conversation> build_conversation(const json::Value& messages, const MessageRules& rules) {
  if (!messages.is(json::Kind::Array)) return invalid("messages: expected an array");
  Conversation conversation;
  std::vector<Value> values;
  values.reserve(messages.size());
  for (const json::Value message : messages) {
    values.push_back(SL_TRY(message_of(message, rules, conversation, values.size())));
  }
  conversation.messages = Value::list(std::move(values));
  return conversation;
}

Value without_developer_role(const Value& messages) {
  const auto given = *messages.as_items();
  const bool has_developer = std::any_of(given.begin(), given.end(), [](const Value& message) {
    return has_role(message, "developer");
  });
  // Most conversations have no message with this role. They stay as they are.
  if (!has_developer) return messages;
  std::vector<Value> converted;
  for (const Value& message : given) {
    converted.push_back(has_role(message, "developer") ? as_system(message) : message);
  }
  const auto is_system = [](const Value& message) { return has_role(message, "system"); };
  const auto systems = std::count_if(converted.begin(), converted.end(), is_system);
  // A single system message at the front keeps its value.
  if (systems == 1 && is_system(converted.front())) return Value::list(std::move(converted));
  std::string text;
  for (const Value& message : converted) {
    const std::string part = is_system(message) ? text_of_content(message) : std::string();
    if (part.empty()) continue;
    if (!text.empty()) text += "\n\n";
    text += part;
  }
  Entries merged;
  add(merged, "role", Value::text_view("system"));
  add(merged, "content", Value::text(std::move(text)));
  converted.erase(std::remove_if(converted.begin(), converted.end(), is_system), converted.end());
  converted.insert(converted.begin(), Value::dict(Dict(std::move(merged))));
  return Value::list(std::move(converted));
}

Result<Value> build_tools(const json::Value& tools) {
  if (!tools.is(json::Kind::Array)) return invalid("tools: expected an array", "tools");
  std::vector<Value> values;
  for (const json::Value tool : tools) {
    if (!tool.is(json::Kind::Object))
      return invalid("tools: every tool must be an object", "tools");
    const auto type = tool.find("type");
    if (type && type->string() != "function") {
      return invalid("tools: only tools of type 'function' are supported", "tools");
    }
    Entries entries;
    add(entries, "type", Value::text_view("function"));
    add(entries, "function", SL_TRY(function_of(tool)));
    if (const auto deferred = tool.find("defer_loading"); is_given(deferred)) {
      add(entries, "defer_loading", Value::from_json(*deferred));
    }
    values.push_back(Value::dict(Dict(std::move(entries))));
  }
  return Value::list(std::move(values));
}

}  // namespace sightline::chat
