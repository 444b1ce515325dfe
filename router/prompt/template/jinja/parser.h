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

// The tokens of a template, and the position of the reader.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // The token at the position, and the one after it. At the end both are the last token.
  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  // Returns the current token and moves to the next one.
  Token next();
  [[nodiscard]] bool is(TokenKind kind) const { return current().kind == kind; }
  // Return whether the current token has this kind and text.
  [[nodiscard]] bool is_operator(std::string_view text) const;
  [[nodiscard]] bool is_name(std::string_view text) const;
  [[nodiscard]] bool is_any_name(std::initializer_list<std::string_view> names) const;
  // Moves over the current token if it has this text. Returns whether it did.
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  // Moves over an expected token, or returns the error of an unexpected one.
  Result<Done> expect_operator(std::string_view text);
  Result<Done> expect_kind(TokenKind kind);
  Result<std::string> expect_name();
  // Returns the error of an unexpected token.
  [[nodiscard]] Error unexpected(std::string_view expected = {}) const;
  [[nodiscard]] Error fail(std::string_view message) const;

 private:
  // The last token is End. The position never moves past it.
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// Parses expressions with the precedence of Jinja2 3.1. The nesting is limited by kNestingMax, and
// the depth of the tree by kExpressionDepthMax. Errors: as Template::parse().
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  // Parses one expression. Without with_condition it parses no "a if b else c", because the
  // statement has an "if" of its own.
  Result<ExpressionPtr> expression(bool with_condition = true);
  // Parses one expression, or several with commas between, which are a tuple. It also ends before
  // the name `end`.
  Result<ExpressionPtr> tuple(bool with_condition = true, std::string_view end = {});
  // Parses the filters after the tag of a filter block or set block: "name(…) | name…". The caller
  // may have read the first "|". children[0] of the innermost filter is null.
  Result<ExpressionPtr> filter_chain();
  // Parses the target of an assignment. With with_attribute it may be name.attribute.
  Result<Target> target(bool with_attribute, std::string_view end = {});

 private:
  using Step = Result<ExpressionPtr> (ExpressionParser::*)();

  ExpressionPtr make(ExpressionKind kind, std::uint32_t line) const;
  // Computes the depth of a node from its children. It is the last step of every rule that adds a
  // level.
  Result<ExpressionPtr> finish(ExpressionPtr node) const;
  // `right` parses the right operand.
  Result<ExpressionPtr> binary(ExpressionKind kind, ExpressionPtr left, Step right);

  // The rules of the grammar, from the lowest precedence to the highest.
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
  // The suffixes of a value, which postfix() and filters_and_tests() collect.
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
