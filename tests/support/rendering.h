// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/json.h"

#include "router/prompt/template/jinja/template.h"

namespace sightline::test {

// The result of a template with the variables (a JSON object), or "error: …".
inline std::string rendered(std::string_view source, std::string variables = "{}",
                            const jinja::RenderOptions& options = {}) {
  const auto parsed = jinja::Template::parse(source);
  if (!parsed.ok()) return "error: " + parsed.error().message;
  const auto document = json::Document::parse(std::move(variables));
  if (!document.ok()) return "test error: " + document.error().message;
  const auto text = parsed->render(jinja::Value::from_json(document->root()), options);
  return text.ok() ? *text : "error: " + text.error().message;
}

// The value of one expression.
inline std::string evaluated(const std::string& expression, std::string variables = "{}") {
  return rendered("{{ " + expression + " }}", std::move(variables));
}

}  // namespace sightline::test
