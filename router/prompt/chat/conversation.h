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

// The messages that a template sees.
struct Conversation {
  jinja::Value messages;  // a list of dicts
  std::vector<MediaSlot> media;
  ToolArguments arguments;  // of all tool calls in the messages
};

// The request's messages as vLLM 0.32 hands them to the template: role, content, tool calls with
// their arguments as objects, reasoning, name, tool_call_id. Values are views of the document.
// Errors: InvalidArgument where the engine answers 400. Those of tool call arguments show when the
// messages are looked at: in Conversation::arguments.
Result<Conversation> build_conversation(const json::Value& messages, const MessageRules& rules);

// For templates that do not know the role "developer": it becomes "system", and all system
// messages become one in front (vLLM 0.32).
jinja::Value without_developer_role(const jinja::Value& messages);

// The tools in the engine's field order: type, function{name, description, parameters, strict if
// given}; description and parameters null if absent, unknown fields dropped (vLLM 0.32).
// Errors: InvalidArgument where the engine answers 400.
Result<jinja::Value> build_tools(const json::Value& tools);

}  // namespace sightline::chat
