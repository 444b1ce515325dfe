// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/value.h"

// The syntax tree of a template: plain data. Built by parse_syntax, walked by the evaluator and by
// those who ask questions about a template.
namespace sightline::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Statement;
using Block = std::vector<Statement>;

enum class ExpressionKind : std::uint8_t {
  Constant,     // constant
  Name,         // name
  List,         // children
  Tuple,        // children
  Dict,         // children: key, value, key, value, …
  Attribute,    // children[0].name
  Item,         // children[0][children[1]]
  Slice,        // children[0][children[1]:children[2]:children[3]], absent ones null
  Call,         // children[0](children[1…], keywords)
  Filter,       // children[0] | name(children[1…], keywords); children[0] null in a filter block
  Test,         // children[0] is name(children[1…], keywords)
  Not,          // children[0]
  Negate,       // children[0]
  Plus,         // children[0]
  And,          // children[0], children[1]
  Or,           // children[0], children[1]
  Conditional,  // children[1] if children[0] else children[2]; children[2] may be null
  Arithmetic,   // children[0] arithmetic children[1]
  Concat,       // children joined as text
  Compare,      // children[0] comparisons[0] children[1] comparisons[1] children[2] …
};

enum class Comparison : std::uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

struct Keyword {
  std::string name;
  ExpressionPtr value;
};

struct Expression {
  ExpressionKind kind = ExpressionKind::Constant;
  std::uint32_t line = 0;
  std::uint32_t depth = 1;  // levels of this subtree
  python::Arithmetic arithmetic = python::Arithmetic::Add;
  std::string name;
  python::Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<Keyword> keywords;
  std::vector<Comparison> comparisons;
};

// What an assignment writes to: a name, a namespace's attribute (attribute not empty), or a tuple
// of targets (parts not empty, name empty).
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
};

enum class StatementKind : std::uint8_t {
  Text,         // text
  Print,        // expression
  If,           // expression; body; branches (the elifs, each an If); otherwise
  For,          // target in expression if condition; body; otherwise
  Set,          // target = expression
  SetBlock,     // target = body, through the filter in expression if any
  With,         // parameters with their values in order; body
  Macro,        // text(parameters); body
  CallBlock,    // expression is the call; parameters of caller(); body
  FilterBlock,  // expression is the filter; body
  Scope,        // body in a scope of its own (generation)
  Break,
  Continue
};

// A macro's parameter with its default, or a name of a with statement with its value.
struct Parameter {
  Target target;
  ExpressionPtr value;
};

struct Statement {
  StatementKind kind = StatementKind::Text;
  std::uint32_t line = 0;
  std::string text;
  Target target;
  ExpressionPtr expression;
  ExpressionPtr condition;
  std::vector<Parameter> parameters;
  Block body;
  Block branches;
  Block otherwise;
};

struct Syntax {
  Block body;
};

enum class TokenKind : std::uint8_t {
  Text,            // template text between tags
  PrintBegin,      // {{
  PrintEnd,        // }}
  StatementBegin,  // {%
  StatementEnd,    // %}
  Name,
  String,    // text: unescaped
  Integer,   // number
  Real,      // number
  Operator,  // text: the operator itself
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::uint32_t line = 0;
  std::string text;
  python::Value number;
};

// The tokens of a template, the last one is End. White space control (trim_blocks, lstrip_blocks,
// "-" and "+" marks), comments and raw blocks are resolved here. Errors as Template::parse.
Result<std::vector<Token>> tokenize(std::string_view source);

// Errors as Template::parse.
Result<Syntax> parse_syntax(std::vector<Token> tokens);

// "line N: message", the client's or the model's fault.
Error error_at(std::uint32_t line, ErrorCode code, std::string_view message);

}  // namespace sightline::jinja
