// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>

#include "router/prompt/template/jinja/parser.h"
#include "router/prompt/template/jinja/template.h"

namespace sightline::jinja {
namespace {

using python::Arithmetic;

struct ComparisonSign {
  std::string_view text;
  Comparison comparison;
};
constexpr std::array<ComparisonSign, 6> kComparisons{{{"==", Comparison::Equal},
                                                      {"!=", Comparison::NotEqual},
                                                      {"<", Comparison::Less},
                                                      {"<=", Comparison::LessEqual},
                                                      {">", Comparison::Greater},
                                                      {">=", Comparison::GreaterEqual}}};

struct ArithmeticSign {
  std::string_view text;
  Arithmetic arithmetic;
};
constexpr std::array<ArithmeticSign, 2> kSums{
    {{"+", Arithmetic::Add}, {"-", Arithmetic::Subtract}}};
constexpr std::array<ArithmeticSign, 4> kProducts{{{"*", Arithmetic::Multiply},
                                                   {"/", Arithmetic::Divide},
                                                   {"//", Arithmetic::FloorDivide},
                                                   {"%", Arithmetic::Modulo}}};

// Returns the row of the operator at the current token, or the end.
template <class Signs>
auto find_sign(const Signs& signs, const TokenStream& stream) {
  return std::find_if(signs.begin(), signs.end(),
                      [&](const auto& sign) { return stream.is_operator(sign.text); });
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Text:
      return "template text";
    case TokenKind::PrintEnd:
      return "end of print statement";
    case TokenKind::StatementEnd:
      return "end of statement block";
    case TokenKind::End:
      return "end of template";
    case TokenKind::Integer:
      return "integer";
    case TokenKind::Real:
      return "float";
    case TokenKind::String:
      return "string";
    default:
      return token.text;
  }
}

}  // namespace

Token TokenStream::next() {
  Token token = tokens_[at_];
  // The last token is End. It stays the current one.
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::is_operator(std::string_view text) const {
  return is(TokenKind::Operator) && current().text == text;
}

bool TokenStream::is_name(std::string_view text) const {
  return is(TokenKind::Name) && current().text == text;
}

bool TokenStream::is_any_name(std::initializer_list<std::string_view> names) const {
  return is(TokenKind::Name) &&
         std::find(names.begin(), names.end(), current().text) != names.end();
}

bool TokenStream::skip_operator(std::string_view text) {
  const bool found = is_operator(text);
  if (found) next();
  return found;
}

bool TokenStream::skip_name(std::string_view text) {
  const bool found = is_name(text);
  if (found) next();
  return found;
}

Result<Done> TokenStream::expect_operator(std::string_view text) {
  if (skip_operator(text)) return Done{};
  return unexpected(text);
}

Result<Done> TokenStream::expect_kind(TokenKind kind) {
  if (!is(kind)) return unexpected(describe(Token{kind, 0, {}, {}}));
  next();
  return Done{};
}

Result<std::string> TokenStream::expect_name() {
  if (!is(TokenKind::Name)) return unexpected("name");
  return next().text;
}

Error TokenStream::unexpected(std::string_view expected) const {
  const std::string got = describe(current());
  if (expected.empty()) return fail("unexpected '" + got + "'");
  return fail("expected token '" + std::string(expected) + "', got '" + got + "'");
}

// All errors of the parser begin with the line of the current token.
Error TokenStream::fail(std::string_view message) const {
  return error_at(current().line, ErrorCode::InvalidArgument, message);
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, std::uint32_t line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

Result<ExpressionPtr> ExpressionParser::finish(ExpressionPtr node) const {
  // A node is one level above its deepest child. The check here limits the recursion of everything
  // that visits the tree.
  for (const ExpressionPtr& child : node->children) {
    if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  }
  for (const Keyword& keyword : node->keywords) {
    node->depth = std::max(node->depth, keyword.value->depth + 1);
  }
  if (node->depth > kExpressionDepthMax) {
    return error_at(node->line, ErrorCode::TooLarge, "the expression is too deep");
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::binary(ExpressionKind kind, ExpressionPtr left,
                                               Step right) {
  ExpressionPtr node = make(kind, left->line);
  node->children.push_back(std::move(left));
  node->children.push_back(SL_TRY((this->*right)()));
  return finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::expression(bool with_condition) {
  // Each bracket recurses into this function. The limit protects the stack.
  if (++nesting_ > kNestingMax) {
    return error_at(stream_.current().line, ErrorCode::TooLarge,
                    "the expression is nested too deeply");
  }
  auto result = with_condition ? condition() : either();
  --nesting_;
  return result;
}

Result<ExpressionPtr> ExpressionParser::tuple(bool with_condition, std::string_view end) {
  const std::uint32_t line = stream_.current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  const auto at_end = [&] {
    return stream_.is(TokenKind::PrintEnd) || stream_.is(TokenKind::StatementEnd) ||
           stream_.is_operator(")") || (!end.empty() && stream_.is_name(end));
  };
  while (!at_end()) {
    items.push_back(SL_TRY(expression(with_condition)));
    if (!stream_.skip_operator(",")) break;
    is_tuple = true;
  }
  // One item without a comma is no tuple.
  if (!is_tuple) {
    if (items.empty()) return stream_.unexpected("expression");
    return std::move(items.front());
  }
  ExpressionPtr node = make(ExpressionKind::Tuple, line);
  node->children = std::move(items);
  return finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::condition() {
  ExpressionPtr value = SL_TRY(either());
  while (stream_.skip_name("if")) {
    ExpressionPtr node = make(ExpressionKind::Conditional, value->line);
    node->children.push_back(SL_TRY(either()));
    node->children.push_back(std::move(value));
    ExpressionPtr otherwise;
    // The part after "else" may be a condition again.
    if (stream_.skip_name("else")) otherwise = SL_TRY(expression());
    node->children.push_back(std::move(otherwise));
    value = SL_TRY(finish(std::move(node)));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::either() {
  ExpressionPtr left = SL_TRY(both());
  while (stream_.skip_name("or")) {
    left = SL_TRY(binary(ExpressionKind::Or, std::move(left), &ExpressionParser::both));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::both() {
  ExpressionPtr left = SL_TRY(negation());
  while (stream_.skip_name("and")) {
    left = SL_TRY(binary(ExpressionKind::And, std::move(left), &ExpressionParser::negation));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::negation() {
  // The loop counts "not" and does not recurse, because the source may repeat it very often.
  const std::uint32_t line = stream_.current().line;
  std::size_t count = 0;
  while (stream_.skip_name("not")) ++count;
  ExpressionPtr node = SL_TRY(comparison());
  for (; count > 0; --count) {
    ExpressionPtr negated = make(ExpressionKind::Not, line);
    negated->children.push_back(std::move(node));
    node = SL_TRY(finish(std::move(negated)));
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::comparison() {
  ExpressionPtr first = SL_TRY(sum());
  // All comparisons of a chain are one node, because the operands in the middle are evaluated only
  // once.
  ExpressionPtr node = make(ExpressionKind::Compare, first->line);
  node->children.push_back(std::move(first));
  for (;;) {
    const auto sign = find_sign(kComparisons, stream_);
    if (sign != kComparisons.end()) {
      stream_.next();
      node->comparisons.push_back(sign->comparison);
    } else if (stream_.skip_name("in")) {
      node->comparisons.push_back(Comparison::In);
    } else if (stream_.is_name("not") && stream_.ahead().kind == TokenKind::Name &&
               stream_.ahead().text == "in") {
      stream_.next();
      stream_.next();
      node->comparisons.push_back(Comparison::NotIn);
    } else {
      break;
    }
    node->children.push_back(SL_TRY(sum()));
  }
  if (node->comparisons.empty()) return std::move(node->children.front());
  return finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::sum() {
  ExpressionPtr left = SL_TRY(concatenation());
  for (auto sign = find_sign(kSums, stream_); sign != kSums.end();
       sign = find_sign(kSums, stream_)) {
    stream_.next();
    left = SL_TRY(
        binary(ExpressionKind::Arithmetic, std::move(left), &ExpressionParser::concatenation));
    left->arithmetic = sign->arithmetic;
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::concatenation() {
  ExpressionPtr first = SL_TRY(product());
  if (!stream_.is_operator("~")) return first;
  ExpressionPtr node = make(ExpressionKind::Concat, first->line);
  node->children.push_back(std::move(first));
  while (stream_.skip_operator("~")) node->children.push_back(SL_TRY(product()));
  return finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::product() {
  ExpressionPtr left = SL_TRY(power());
  for (auto sign = find_sign(kProducts, stream_); sign != kProducts.end();
       sign = find_sign(kProducts, stream_)) {
    stream_.next();
    left = SL_TRY(binary(ExpressionKind::Arithmetic, std::move(left), &ExpressionParser::power));
    left->arithmetic = sign->arithmetic;
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::power() {
  // The operator "**" joins from the left in Jinja2.
  ExpressionPtr left = SL_TRY(unary(true));
  while (stream_.skip_operator("**")) {
    left = SL_TRY(
        binary(ExpressionKind::Arithmetic, std::move(left), &ExpressionParser::unary_with_filters));
    left->arithmetic = Arithmetic::Power;
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::unary(bool with_filters) {
  // The signs are collected in a loop, because the source may repeat them very often.
  std::vector<ExpressionPtr> signs;
  while (stream_.is_operator("-") || stream_.is_operator("+")) {
    const bool is_minus = stream_.is_operator("-");
    signs.push_back(
        make(is_minus ? ExpressionKind::Negate : ExpressionKind::Plus, stream_.next().line));
  }
  ExpressionPtr node = SL_TRY(primary());
  node = SL_TRY(postfix(std::move(node)));
  for (; !signs.empty(); signs.pop_back()) {
    signs.back()->children.push_back(std::move(node));
    node = SL_TRY(finish(std::move(signs.back())));
  }
  if (!with_filters) return node;
  return filters_and_tests(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::primary() {
  const Token& token = stream_.current();
  ExpressionPtr node = make(ExpressionKind::Constant, token.line);
  switch (token.kind) {
    // Both spellings of these constants are valid in Jinja2.
    case TokenKind::Name: {
      std::string name = stream_.next().text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        node->constant = Value::boolean(name.front() == 't' || name.front() == 'T');
      } else if (name != "none" && name != "None") {
        node->kind = ExpressionKind::Name;
        node->name = std::move(name);
      }
      return node;
    }
    case TokenKind::String: {
      // Neighbouring strings are one string, as in Python.
      std::string text;
      while (stream_.is(TokenKind::String)) text += stream_.next().text;
      node->constant = Value::text(std::move(text));
      return node;
    }
    case TokenKind::Integer:
    case TokenKind::Real:
      node->constant = stream_.next().number;
      return node;
    default:
      return bracketed();
  }
}

Result<ExpressionPtr> ExpressionParser::bracketed() {
  if (stream_.is_operator("[")) return list();
  if (stream_.is_operator("{")) return dict();
  const std::uint32_t line = stream_.current().line;
  if (!stream_.skip_operator("(")) return stream_.unexpected();
  if (stream_.skip_operator(")")) return make(ExpressionKind::Tuple, line);
  ExpressionPtr inner = SL_TRY(tuple());
  SL_TRY(stream_.expect_operator(")"));
  return inner;
}

Result<ExpressionPtr> ExpressionParser::list() {
  ExpressionPtr node = make(ExpressionKind::List, stream_.next().line);
  while (!stream_.is_operator("]")) {
    node->children.push_back(SL_TRY(expression()));
    if (!stream_.skip_operator(",")) break;
  }
  SL_TRY(stream_.expect_operator("]"));
  return finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::dict() {
  ExpressionPtr node = make(ExpressionKind::Dict, stream_.next().line);
  while (!stream_.is_operator("}")) {
    node->children.push_back(SL_TRY(expression()));
    SL_TRY(stream_.expect_operator(":"));
    node->children.push_back(SL_TRY(expression()));
    if (!stream_.skip_operator(",")) break;
  }
  SL_TRY(stream_.expect_operator("}"));
  return finish(std::move(node));
}

}  // namespace sightline::jinja
