// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>

#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// The form in which the contents of messages reach a chat template (vLLM 0.32,
// chat-template-content-format). With String the parts are joined to one text before rendering.
// With OpenAi the template gets a list of parts.
enum class ContentFormat : std::uint8_t { String, OpenAi };
// "string" or "openai".
std::string_view name_of(ContentFormat format);

// The rule of vLLM 0.32 for the format "auto". The format is OpenAi if the template loops over one
// of these:
// - the content of a message,
// - a macro parameter, if a call passes a message's content to it,
// - outside of macros, a variable with the name `content`.
//
// Otherwise it is String. Pure.
ContentFormat detect_content_format(const jinja::Template& chat_template);

}  // namespace sightline::chat
