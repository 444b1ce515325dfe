// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <iterator>

#include "router/prompt/template/jinja/parser.h"
#include "router/prompt/template/jinja/template.h"

// The suffixes of a value: attributes, subscripts, calls, filters and tests. Also the targets of
// assignments.
namespace sightline::jinja {

Result<ExpressionPtr> ExpressionParser::postfix(ExpressionPtr node) {
  for (;;) {
    if (stream_.is_operator(".")) {
      node = SL_TRY(attribute(std::move(node)));
    } else if (stream_.is_operator("[")) {
      node = SL_TRY(subscript(std::move(node)));
    } else if (stream_.is_operator("(")) {
      node = SL_TRY(call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::filters_and_tests(ExpressionPtr node) {
  for (;;) {
    if (stream_.skip_operator("|")) {
      node = SL_TRY(filter(std::move(node)));
    } else if (stream_.skip_name("is")) {
      node = SL_TRY(test(std::move(node)));
      // A call may follow a filter or a test, as in Jinja2.
    } else if (stream_.is_operator("(")) {
      node = SL_TRY(call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::attribute(ExpressionPtr node) {
  const std::uint32_t line = stream_.next().line;
  ExpressionPtr result = make(ExpressionKind::Attribute, line);
  result->children.push_back(std::move(node));
  // Jinja2 reads "a.0" as an item.
  if (stream_.is(TokenKind::Integer)) {
    result->kind = ExpressionKind::Item;
    ExpressionPtr index = make(ExpressionKind::Constant, line);
    index->constant = stream_.next().number;
    result->children.push_back(std::move(index));
  } else {
    result->name = SL_TRY(stream_.expect_name());
  }
  return finish(std::move(result));
}

Result<ExpressionPtr> ExpressionParser::subscript(ExpressionPtr node) {
  ExpressionPtr result = make(ExpressionKind::Item, stream_.next().line);
  result->children.push_back(std::move(node));
  ExpressionPtr first;
  if (!stream_.is_operator(":")) first = SL_TRY(expression());
  result->children.push_back(std::move(first));
  if (stream_.is_operator(":")) {
    result->kind = ExpressionKind::Slice;
    // A slice has two more parts. Absent parts are null.
    for (int part = 0; part < 2; ++part) {
      ExpressionPtr bound;
      const bool has_colon = stream_.skip_operator(":");
      if (has_colon && !stream_.is_operator(":") && !stream_.is_operator("]")) {
        bound = SL_TRY(expression());
      }
      result->children.push_back(std::move(bound));
    }
  }
  SL_TRY(stream_.expect_operator("]"));
  return finish(std::move(result));
}

Result<ExpressionPtr> ExpressionParser::call(ExpressionPtr node) {
  ExpressionPtr result = make(ExpressionKind::Call, stream_.current().line);
  result->children.push_back(std::move(node));
  SL_TRY(arguments(*result));
  return finish(std::move(result));
}

Result<Done> ExpressionParser::arguments(Expression& node) {
  SL_TRY(stream_.expect_operator("("));
  while (!stream_.is_operator(")")) {
    if (stream_.is_operator("*") || stream_.is_operator("**")) {
      return error_at(stream_.current().line, ErrorCode::Unsupported,
                      "calls with *args or **kwargs are not supported");
    }
    // A keyword is a name before "=". Only one token of look-ahead is needed.
    const bool is_keyword = stream_.is(TokenKind::Name) &&
                            stream_.ahead().kind == TokenKind::Operator &&
                            stream_.ahead().text == "=";
    if (is_keyword) {
      Keyword keyword;
      keyword.name = stream_.next().text;
      stream_.next();
      keyword.value = SL_TRY(expression());
      node.keywords.push_back(std::move(keyword));
    } else if (!node.keywords.empty()) {
      return stream_.fail("invalid syntax for function call expression");
    } else {
      node.children.push_back(SL_TRY(expression()));
    }
    if (!stream_.skip_operator(",")) break;
  }
  return stream_.expect_operator(")");
}

Result<ExpressionPtr> ExpressionParser::filter(ExpressionPtr node) {
  ExpressionPtr result = make(ExpressionKind::Filter, stream_.current().line);
  result->name = SL_TRY(stream_.expect_name());
  result->children.push_back(std::move(node));
  if (stream_.is_operator("(")) SL_TRY(arguments(*result));
  return finish(std::move(result));
}

Result<ExpressionPtr> ExpressionParser::filter_chain() {
  ExpressionPtr node;
  do {
    node = SL_TRY(filter(std::move(node)));
  } while (stream_.skip_operator("|"));
  return node;
}

Result<ExpressionPtr> ExpressionParser::test(ExpressionPtr node) {
  const bool is_negated = stream_.skip_name("not");
  ExpressionPtr result = make(ExpressionKind::Test, stream_.current().line);
  result->name = SL_TRY(stream_.expect_name());
  result->children.push_back(std::move(node));
  // The argument of a test needs no parentheses: "x is divisibleby 3".
  const bool may_be_argument = stream_.is(TokenKind::Name) || stream_.is(TokenKind::String) ||
                               stream_.is(TokenKind::Integer) || stream_.is(TokenKind::Real) ||
                               stream_.is_operator("[") || stream_.is_operator("{");
  if (stream_.is_operator("(")) {
    SL_TRY(arguments(*result));
  } else if (stream_.is_name("is")) {
    return stream_.fail("You cannot chain multiple tests with is");
  } else if (may_be_argument && !stream_.is_any_name({"else", "or", "and"})) {
    ExpressionPtr argument = SL_TRY(primary());
    result->children.push_back(SL_TRY(postfix(std::move(argument))));
  }
  result = SL_TRY(finish(std::move(result)));
  // "x is not y" is the negation of the test.
  if (!is_negated) return result;
  ExpressionPtr negated = make(ExpressionKind::Not, result->line);
  negated->children.push_back(std::move(result));
  return finish(std::move(negated));
}

Result<Target> ExpressionParser::single_target(bool with_attribute) {
  Target target;
  if (stream_.skip_operator("(")) {
    target = SL_TRY(this->target(with_attribute));
    SL_TRY(stream_.expect_operator(")"));
    return target;
  }
  target.name = SL_TRY(stream_.expect_name());
  static constexpr std::string_view kReserved[] = {"true",  "True", "false",
                                                   "False", "none", "None"};
  if (std::find(std::begin(kReserved), std::end(kReserved), target.name) != std::end(kReserved)) {
    return stream_.fail("can't assign to '" + target.name + "'");
  }
  if (with_attribute && stream_.skip_operator(".")) {
    target.attribute = SL_TRY(stream_.expect_name());
  }
  return target;
}

Result<Target> ExpressionParser::target(bool with_attribute, std::string_view end) {
  // Parentheses in a target recurse into this function.
  if (++nesting_ > kNestingMax) return stream_.fail("the assignment is nested too deeply");
  Target first = SL_TRY(single_target(with_attribute));
  --nesting_;
  if (!stream_.is_operator(",")) return first;
  Target tuple;
  tuple.parts.push_back(std::move(first));
  while (stream_.skip_operator(",")) {
    const bool at_end = stream_.is_operator(")") || stream_.is_operator("=") ||
                        stream_.is(TokenKind::StatementEnd) ||
                        (!end.empty() && stream_.is_name(end));
    if (at_end) break;
    tuple.parts.push_back(SL_TRY(single_target(with_attribute)));
  }
  return tuple;
}

}  // namespace sightline::jinja
