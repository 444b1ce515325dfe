// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// What transformers passes to a chat template (5.23, render_jinja_template).
struct TemplateCall {
  jinja::Value messages;   // a list of dicts
  jinja::Value tools;      // a list or None
  jinja::Value documents;  // a list or None
  bool add_generation_prompt = false;
  bool continue_final_message = false;
  // Further variables: special tokens, then chat_template_kwargs; of equal names the last counts.
  std::vector<jinja::Dict::Entry> variables;
};

// Renders as transformers does: reasoning under all its names, and with continue_final_message the
// text cut behind the last message's content. source is the template's own text. Errors: those of
// jinja::Template::render; InvalidArgument where transformers raises.
Result<std::string> call_template(const jinja::Template& chat_template, std::string_view source,
                                  const TemplateCall& call, const jinja::RenderOptions& options);

}  // namespace sightline::chat
