// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>

#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// How message contents reach a chat template (vLLM 0.32, chat-template-content-format).
// String: parts are flattened to one text before rendering. OpenAi: a list of parts.
enum class ContentFormat : std::uint8_t { String, OpenAi };
// "string", "openai".
std::string_view name_of(ContentFormat format);

// vLLM 0.32's "auto" rule: OpenAi if the template loops over the content of a message, over a macro
// parameter that is given such a content, or over a variable named `content` outside macros.
ContentFormat detect_content_format(const jinja::Template& chat_template);

}  // namespace sightline::chat
