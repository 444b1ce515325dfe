// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/python_value.h"

// The syntax tree of a template, which is plain data. parse_syntax() creates it. The evaluator and
// the detection of content formats read it.
namespace sightline::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Statement;
using Block = std::vector<Statement>;

// The kinds of expressions. Each row shows the members of Expression that the kind uses.
enum class ExpressionKind : std::uint8_t {
  Constant,   // constant
  Name,       // name
  List,       // children
  Tuple,      // children
  Dict,       // children: key, value, key, value, ….
  Attribute,  // children[0].name
  Item,       // children[0][children[1]]
  Slice,      // children[0][children[1]:children[2]:children[3]]. Absent ones are null.
  Call,       // children[0](children[1…], keywords)
  Filter,  // children[0] | name(children[1…], keywords), without children[0] in a filter block.
  Test,    // children[0] is name(children[1…], keywords)
  Not,     // children[0]
  Negate,  // children[0]
  Plus,    // children[0]
  And,     // children[0], children[1]
  Or,      // children[0], children[1]
  Conditional,  // children[1] if children[0] else children[2], which may be null.
  Arithmetic,   // children[0] arithmetic children[1]
  Concat,       // children joined as text
  Compare,      // children[0] comparisons[0] children[1] comparisons[1] children[2] …
};

// The comparisons of Compare. `in` and `not in` are among them.
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

// A keyword argument of a call, filter or test.
struct Keyword {
  std::string name;
  ExpressionPtr value;
};

// A node of an expression. `line` is the line in the template, from 1 on.
struct Expression {
  ExpressionKind kind = ExpressionKind::Constant;
  std::uint32_t line = 0;
  std::uint32_t depth = 1;  // levels of the subtree, this node included
  python::Arithmetic arithmetic = python::Arithmetic::Add;
  std::string name;
  python::Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<Keyword> keywords;
  std::vector<Comparison> comparisons;
};

// The target of an assignment. It is a name, an attribute of a namespace (`attribute` not empty),
// or a tuple of targets (`parts` not empty, `name` empty).
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
};

// The kinds of statements. Each row shows the members of Statement that the kind uses.
enum class StatementKind : std::uint8_t {
  Text,         // text
  Print,        // expression
  If,           // expression, body, branches (the elifs, each an If), otherwise.
  For,          // target in expression if condition, body, otherwise.
  Set,          // target = expression
  SetBlock,     // target = body, through the filter in expression if any.
  With,         // parameters with their values in order, body.
  Macro,        // text(parameters), body.
  CallBlock,    // expression is the call, parameters of caller(), body.
  FilterBlock,  // expression is the filter, body.
  Scope,        // body in a scope of its own (generation).
  Break,
  Continue
};

// A parameter of a macro with its default value, or a name of a with statement with its value.
struct Parameter {
  Target target;
  ExpressionPtr value;
};

// A node of the statements. `line` is the line in the template, from 1 on.
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

// A whole template.
struct Syntax {
  Block body;
};

// The kinds of tokens. Each row shows the members of Token that the kind uses.
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

// A token with its line in the template, from 1 on.
struct Token {
  TokenKind kind = TokenKind::End;
  std::uint32_t line = 0;
  std::string text;
  python::Value number;
};

// Splits a template into tokens. The last one is End. This step also handles white space control
// (trim_blocks, lstrip_blocks, the marks "-" and "+"), comments and raw blocks. Errors: as
// Template::parse().
Result<std::vector<Token>> tokenize(std::string_view source);

// Parses the tokens of a template. Errors: as Template::parse().
Result<Syntax> parse_syntax(std::vector<Token> tokens);

// Returns an error with the message "line N: message". It blames the client.
Error error_at(std::uint32_t line, ErrorCode code, std::string_view message);

}  // namespace sightline::jinja
