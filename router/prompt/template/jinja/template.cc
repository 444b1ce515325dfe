// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/jinja/template.h"

#include "router/prompt/template/jinja/evaluator.h"
#include "router/prompt/template/jinja/syntax.h"

namespace sightline::jinja {

Result<Template> Template::parse(std::string_view source) {
  std::vector<Token> tokens = SL_TRY(tokenize(source));
  Syntax syntax = SL_TRY(parse_syntax(std::move(tokens)));
  return Template(std::make_shared<const Syntax>(std::move(syntax)));
}

Result<std::string> Template::render(const Value& variables, const RenderOptions& options) const {
  // look_up() reads variables from this dict.
  SL_CHECK(variables.as_dict() != nullptr);
  return Evaluator(variables, options).run(*syntax_);
}

}  // namespace sightline::jinja
