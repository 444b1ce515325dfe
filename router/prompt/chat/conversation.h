// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

#include "router/prompt/chat/content.h"
#include "router/prompt/chat/tool_arguments.h"
#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// The messages that a template gets. They are views of the request's document.
struct Conversation {
  jinja::Value messages;  // a list of dicts
  // The media parts of all messages, in order of appearance.
  std::vector<MediaSlot> media;
  // The arguments of all tool calls in the messages.
  ToolArguments arguments;
};

// Converts the messages of a request to the values that vLLM 0.32 gives to the template. They have
// role, content, tool calls with objects as arguments, reasoning, name and tool_call_id. The values
// are views of the document, which must live longer.
//
// Errors: InvalidArgument where the engine answers 400. Errors of tool call arguments appear only
// when the template reads the messages. Conversation::arguments then holds them.
Result<Conversation> build_conversation(const json::Value& messages, const MessageRules& rules);

// Converts messages for templates without the role "developer". This role becomes "system". All
// system messages become one message at the front (vLLM 0.32). Messages without the role
// "developer" stay unchanged.
jinja::Value without_developer_role(const jinja::Value& messages);

// Converts the tools, with their fields in the engine's order (vLLM 0.32): type, function{name,
// description, parameters, strict if present, defer_loading if present}. An absent description or
// absent parameters become null. Other fields are dropped.
//
// Errors: InvalidArgument where the engine answers 400.
Result<jinja::Value> build_tools(const json::Value& tools);

}  // namespace sightline::chat
