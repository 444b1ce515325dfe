// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/jinja/syntax.h"

namespace sightline::jinja {

// The tokens of a template and where reading them stands.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  Token next();
  [[nodiscard]] bool is(TokenKind kind) const { return current().kind == kind; }
  [[nodiscard]] bool is_operator(std::string_view text) const;
  [[nodiscard]] bool is_name(std::string_view text) const;
  [[nodiscard]] bool is_any_name(std::initializer_list<std::string_view> names) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  Result<Done> expect_operator(std::string_view text);
  Result<Done> expect_kind(TokenKind kind);
  Result<std::string> expect_name();
  // The error of an unexpected token.
  [[nodiscard]] Error unexpected(std::string_view expected = {}) const;
  [[nodiscard]] Error fail(std::string_view message) const;

 private:
  std::vector<Token> tokens_;  // the last one is End and is never passed
  std::size_t at_ = 0;
};

// Reads expressions with Jinja2 3.1's precedence.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  // One expression; without conditions ("a if b else c") where the statement has its own "if".
  Result<ExpressionPtr> expression(bool with_condition = true);
  // An expression or several with commas between: a tuple. It also ends before the word `end`.
  Result<ExpressionPtr> tuple(bool with_condition = true, std::string_view end = {});
  // What stands behind a filter block's or set block's tag: "name(…) | name…", first "|" read or
  // left out. The innermost filter's children[0] is null.
  Result<ExpressionPtr> filter_chain();
  // What may be assigned to. with_attribute: also name.attribute.
  Result<Target> target(bool with_attribute, std::string_view end = {});

 private:
  using Step = Result<ExpressionPtr> (ExpressionParser::*)();

  ExpressionPtr make(ExpressionKind kind, std::uint32_t line) const;
  // Accounts for the children's depth; the last step of every rule that adds a level.
  Result<ExpressionPtr> finish(ExpressionPtr node) const;
  Result<ExpressionPtr> binary(ExpressionKind kind, ExpressionPtr left, Step right);

  Result<ExpressionPtr> condition();
  Result<ExpressionPtr> either();
  Result<ExpressionPtr> both();
  Result<ExpressionPtr> negation();
  Result<ExpressionPtr> comparison();
  Result<ExpressionPtr> sum();
  Result<ExpressionPtr> concatenation();
  Result<ExpressionPtr> product();
  Result<ExpressionPtr> power();
  Result<ExpressionPtr> unary_with_filters() { return unary(true); }
  Result<ExpressionPtr> unary(bool with_filters);
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> bracketed();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> postfix(ExpressionPtr node);
  Result<ExpressionPtr> filters_and_tests(ExpressionPtr node);
  Result<ExpressionPtr> attribute(ExpressionPtr node);
  Result<ExpressionPtr> subscript(ExpressionPtr node);
  Result<ExpressionPtr> call(ExpressionPtr node);
  Result<ExpressionPtr> filter(ExpressionPtr node);
  Result<ExpressionPtr> test(ExpressionPtr node);
  Result<Done> arguments(Expression& node);
  Result<Target> single_target(bool with_attribute);

  TokenStream& stream_;
  std::size_t nesting_ = 0;
};

}  // namespace sightline::jinja
