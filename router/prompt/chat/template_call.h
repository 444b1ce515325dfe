// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// The arguments that transformers gives to a chat template (5.23, render_jinja_template).
struct TemplateCall {
  jinja::Value messages;   // a list of dicts
  jinja::Value tools;      // a list, or Python's `None`
  jinja::Value documents;  // a list, or Python's `None`
  // Whether the prompt ends with the beginning of an assistant message.
  bool add_generation_prompt = false;
  // Whether the prompt ends with the text of the last message, which the engine continues.
  bool continue_final_message = false;
  // Further variables: special tokens, then chat_template_kwargs. Of two with one name the last
  // counts.
  std::vector<jinja::Dict::Entry> variables;
};

// Renders a prompt as transformers does. Messages have their reasoning under all of its names. With
// continue_final_message the text is cut after the content of the last message. `source` is the
// template's own text.
//
// Errors: those of jinja::Template::render(), and InvalidArgument where transformers raises an
// exception.
Result<std::string> call_template(const jinja::Template& chat_template, std::string_view source,
                                  const TemplateCall& call, const jinja::RenderOptions& options);

}  // namespace sightline::chat
