// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/content_format.h"

#include <algorithm>
#include <string>
#include <vector>

#include "router/prompt/template/jinja/syntax.h"

namespace sightline::chat {
namespace {

using jinja::Block;
using jinja::Expression;
using jinja::ExpressionKind;
using jinja::Statement;
using jinja::StatementKind;
using Names = std::vector<std::string_view>;

// The parts of the template that the rule reads.
struct Findings {
  std::vector<const Statement*> assignments;
  std::vector<const Statement*> macros;
  std::vector<const Expression*> calls;
  struct FoundLoop {
    const Statement* loop;
    // The innermost macro around the loop, or null.
    const Statement* macro;
  };
  std::vector<FoundLoop> loops;
};

void collect(const Expression& expression, Findings& findings) {
  if (expression.kind == ExpressionKind::Call) findings.calls.push_back(&expression);
  for (const auto& child : expression.children) {
    if (child != nullptr) collect(*child, findings);
  }
  for (const auto& keyword : expression.keywords) collect(*keyword.value, findings);
}

void collect(const Block& block, const Statement* macro, Findings& findings) {
  for (const Statement& statement : block) {
    const bool is_macro = statement.kind == StatementKind::Macro;
    if (statement.kind == StatementKind::Set) findings.assignments.push_back(&statement);
    if (is_macro) findings.macros.push_back(&statement);
    if (statement.kind == StatementKind::For) findings.loops.push_back({&statement, macro});
    if (statement.expression != nullptr) collect(*statement.expression, findings);
    if (statement.condition != nullptr) collect(*statement.condition, findings);
    for (const auto& parameter : statement.parameters) {
      if (parameter.value != nullptr) collect(*parameter.value, findings);
    }
    const Statement* deps = is_macro ? &statement : macro;
    collect(statement.body, deps, findings);
    collect(statement.branches, deps, findings);
    collect(statement.otherwise, deps, findings);
  }
}

bool is_name(const Expression& expression, std::string_view name) {
  return expression.kind == ExpressionKind::Name && expression.name == name;
}

// Matches name.key and name["key"].
bool is_member(const Expression& expression, std::string_view name, std::string_view key) {
  const bool is_attribute = expression.kind == ExpressionKind::Attribute && expression.name == key;
  const bool is_item = expression.kind == ExpressionKind::Item &&
                       expression.children[1]->kind == ExpressionKind::Constant &&
                       expression.children[1]->constant.as_text() == key;
  return (is_attribute || is_item) && is_name(*expression.children[0], name);
}

// Returns whether an expression is the variable or its member. Filters, tests and slices around it
// do not matter.
bool reaches(const Expression& expression, std::string_view name, std::string_view key) {
  const Expression* at = &expression;
  while (at->kind == ExpressionKind::Filter || at->kind == ExpressionKind::Test ||
         at->kind == ExpressionKind::Slice) {
    if (at->children[0] == nullptr) return false;
    at = at->children[0].get();
  }
  return key.empty() ? is_name(*at, name) : is_member(*at, name, key);
}

bool reaches_any(const Expression& expression, const Names& names, std::string_view key) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return reaches(expression, name, key); });
}

// "messages" and every variable that is assigned from one of these.
Names names_of_messages(const Findings& findings) {
  Names names{"messages"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const Statement* assignment : findings.assignments) {
      const std::string_view target = assignment->target.name;
      const bool is_known = std::find(names.begin(), names.end(), target) != names.end();
      if (!is_known && !target.empty() && reaches(*assignment->expression, names[i], {})) {
        names.push_back(target);
      }
    }
  }
  return names;
}

// The loop variables over messages.
Names names_of_message(const Findings& findings, const Names& messages) {
  Names names;
  for (const auto& [loop, macro] : findings.loops) {
    if (reaches_any(*loop->expression, messages, {})) names.push_back(loop->target.name);
  }
  return names;
}

// The parameters of the macro that some call passes a message's content to.
Names content_parameters(const Findings& findings, const Statement& macro, const Names& message) {
  Names names;
  for (const Expression* call : findings.calls) {
    if (!is_name(*call->children[0], macro.text)) continue;
    for (std::size_t i = 1; i < call->children.size() && i <= macro.parameters.size(); ++i) {
      if (reaches_any(*call->children[i], message, "content")) {
        names.push_back(macro.parameters[i - 1].target.name);
      }
    }
    for (const auto& keyword : call->keywords) {
      if (reaches_any(*keyword.value, message, "content")) names.push_back(keyword.name);
    }
  }
  return names;
}

}  // namespace

std::string_view name_of(ContentFormat format) {
  return format == ContentFormat::OpenAi ? "openai" : "string";
}

ContentFormat detect_content_format(const jinja::Template& chat_template) {
  Findings findings;
  collect(chat_template.syntax().body, nullptr, findings);
  const Names message = names_of_message(findings, names_of_messages(findings));
  const bool loops_over_content = std::any_of(
      findings.loops.begin(), findings.loops.end(), [&](const Findings::FoundLoop& found) {
        const Expression& iterated = *found.loop->expression;
        if (reaches_any(iterated, message, "content")) return true;
        // This part of the rule does not follow assignments. It looks only at the name.
        if (found.macro == nullptr) return is_name(iterated, "content");
        const Names parameters = content_parameters(findings, *found.macro, message);
        return iterated.kind == ExpressionKind::Name &&
               std::find(parameters.begin(), parameters.end(), iterated.name) != parameters.end();
      });
  return loops_over_content ? ContentFormat::OpenAi : ContentFormat::String;
}

}  // namespace sightline::chat
