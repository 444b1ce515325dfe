// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>

#include "router/prompt/template/filters/filters.h"
#include "router/prompt/template/jinja/evaluator.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"

namespace sightline::jinja {
namespace {

using python::Arguments;
using python::BoundMethod;

python::Ordering ordering_of(Comparison comparison) {
  switch (comparison) {
    case Comparison::Less:
      return python::Ordering::Less;
    case Comparison::LessEqual:
      return python::Ordering::LessEqual;
    case Comparison::Greater:
      return python::Ordering::Greater;
    default:
      return python::Ordering::GreaterEqual;
  }
}

Result<bool> compare_pair(Comparison comparison, const Value& left, const Value& right,
                          python::Meter& meter) {
  switch (comparison) {
    case Comparison::Equal:
      return python::equals(left, right, meter);
    case Comparison::NotEqual:
      return !python::equals(left, right, meter);
    case Comparison::In:
      return python::contains(right, left, meter);
    case Comparison::NotIn:
      return !SL_TRY(python::contains(right, left, meter));
    default:
      return python::compare(ordering_of(comparison), left, right, meter);
  }
}

}  // namespace

Result<Value> Evaluator::evaluate(const Expression& expression, Scope& scope) {
  if (!meter_.spend()) return check_limits(expression.line).error();
  SL_TRY(descend(1, expression.line));
  auto result = evaluate_kind(expression, scope);
  --depth_;
  // An operation without steps returns any value, or fails because of the missing steps. The error
  // of the limit replaces both.
  if (meter_.is_exhausted()) return check_limits(expression.line).error();
  // Code that visits or destroys a value recurses once per level.
  if (result.ok() && result->depth() > python::kValueDepthMax) {
    return error_at(expression.line, ErrorCode::TooLarge, "the value is nested too deeply");
  }
  return result;
}

Result<Value> Evaluator::evaluate_kind(const Expression& expression, Scope& scope) {
  switch (expression.kind) {
    case ExpressionKind::Constant:
      return expression.constant;
    case ExpressionKind::Name:
      return look_up(expression.name, scope);
    case ExpressionKind::List:
      return Value::list(SL_TRY(evaluate_all(expression, scope)));
    case ExpressionKind::Tuple:
      return Value::list(SL_TRY(evaluate_all(expression, scope)), python::SequenceKind::Tuple);
    case ExpressionKind::Dict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::Attribute:
    case ExpressionKind::Item:
      return evaluate_item(expression, scope);
    case ExpressionKind::Slice:
      return evaluate_slice(expression, scope);
    case ExpressionKind::Call:
      return evaluate_call(expression, scope, nullptr);
    case ExpressionKind::Filter:
      return evaluate_filter(expression, scope, nullptr);
    case ExpressionKind::Test:
      return evaluate_test(expression, scope);
    case ExpressionKind::Not:
    case ExpressionKind::And:
    case ExpressionKind::Or:
    case ExpressionKind::Conditional:
      return evaluate_logic(expression, scope);
    case ExpressionKind::Negate:
    case ExpressionKind::Plus:
    case ExpressionKind::Arithmetic:
      return evaluate_arithmetic(expression, scope);
    case ExpressionKind::Concat:
      return evaluate_concat(expression, scope);
    case ExpressionKind::Compare:
      return evaluate_comparison(expression, scope);
  }
  return Value();
}

Result<Value> Evaluator::look_up(std::string_view name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    if (const Value* value = at->find_here(name)) return *value;
  }
  // A variable of the request may hide a function, as in Jinja2.
  if (const Value* value = variables_.as_dict()->find(name)) return *value;
  if (const auto function = find_function(name)) return Value::foreign(&own<Function>(*function));
  return Value::undefined("'" + std::string(name) + "' is undefined");
}

Result<std::vector<Value>> Evaluator::evaluate_all(const Expression& expression, Scope& scope) {
  std::vector<Value> values;
  values.reserve(expression.children.size());
  for (const ExpressionPtr& child : expression.children) {
    values.push_back(SL_TRY(evaluate(*child, scope)));
  }
  return values;
}

Result<Value> Evaluator::evaluate_dict(const Expression& expression, Scope& scope) {
  const std::vector<Value> values = SL_TRY(evaluate_all(expression, scope));
  std::vector<Dict::Entry> entries;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    if (!python::is_hashable(values[i])) {
      return error_at(expression.line, ErrorCode::InvalidArgument,
                      "unhashable type: '" + std::string(values[i].type_name()) + "'");
    }
    entries.emplace_back(values[i], values[i + 1]);
  }
  return Value::dict(Dict(std::move(entries)));
}

Result<Value> Evaluator::evaluate_item(const Expression& expression, Scope& scope) {
  const Value object = SL_TRY(evaluate(*expression.children[0], scope));
  // `a.b` and `a["b"]` differ in their order of look-ups.
  if (expression.kind == ExpressionKind::Attribute) {
    return located(expression.line, python::attribute_of(object, expression.name));
  }
  const Value key = SL_TRY(evaluate(*expression.children[1], scope));
  return located(expression.line, python::item_of(object, key));
}

Result<Value> Evaluator::evaluate_slice(const Expression& expression, Scope& scope) {
  const Value object = SL_TRY(evaluate(*expression.children[0], scope));
  std::optional<std::int64_t> bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const ExpressionPtr& part = expression.children[i + 1];
    if (part == nullptr) continue;
    const Value bound = SL_TRY(evaluate(*part, scope));
    if (bound.is_none()) continue;
    bounds[i] = bound.as_integer();
    if (!bounds[i]) {
      return error_at(expression.line, ErrorCode::InvalidArgument,
                      "slice indices must be integers or None or have an __index__ method");
    }
  }
  return located(expression.line, python::slice(object, {bounds[0], bounds[1], bounds[2]}, meter_));
}

Result<Value> Evaluator::evaluate_logic(const Expression& expression, Scope& scope) {
  Value first = SL_TRY(evaluate(*expression.children[0], scope));
  const bool holds = first.is_true();
  switch (expression.kind) {
    case ExpressionKind::Not:
      return Value::boolean(!holds);
    // The second operand is evaluated only if it is needed. Templates rely on this.
    case ExpressionKind::And:
      return holds ? evaluate(*expression.children[1], scope) : Result<Value>(std::move(first));
    case ExpressionKind::Or:
      return holds ? Result<Value>(std::move(first)) : evaluate(*expression.children[1], scope);
    default:
      break;
  }
  if (holds) return evaluate(*expression.children[1], scope);
  if (expression.children[2] != nullptr) return evaluate(*expression.children[2], scope);
  // Jinja2 has this value for a missing else.
  return Value::undefined("the inline if-expression on line " + std::to_string(expression.line) +
                          " evaluated to false and no else section was defined.");
}

Result<Value> Evaluator::evaluate_comparison(const Expression& expression, Scope& scope) {
  Value left = SL_TRY(evaluate(*expression.children[0], scope));
  for (std::size_t i = 0; i < expression.comparisons.size(); ++i) {
    Value right = SL_TRY(evaluate(*expression.children[i + 1], scope));
    const bool holds = SL_TRY(
        located(expression.line, compare_pair(expression.comparisons[i], left, right, meter_)));
    if (!holds) return Value::boolean(false);
    // The right operand is the left one of the next comparison. It is evaluated only once.
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Evaluator::evaluate_concat(const Expression& expression, Scope& scope) {
  const std::vector<Value> parts = SL_TRY(evaluate_all(expression, scope));
  std::string out;
  for (const Value& part : parts) python::append_str(out, part, meter_);
  return Value::text(std::move(out));
}

Result<Value> Evaluator::evaluate_arithmetic(const Expression& expression, Scope& scope) {
  const Value left = SL_TRY(evaluate(*expression.children[0], scope));
  if (expression.kind == ExpressionKind::Negate)
    return located(expression.line, python::negate(left));
  if (expression.kind == ExpressionKind::Plus) {
    // In Python, +True is the integer 1.
    if (left.as_integer()) return Value::integer(*left.as_integer());
    if (left.as_real()) return left;
    return located(expression.line, Result<Value>(python::type_error(
                                        left, "bad operand type for unary +: '" +
                                                  std::string(left.type_name()) + "'")));
  }
  const Value right = SL_TRY(evaluate(*expression.children[1], scope));
  return located(expression.line, python::arithmetic(expression.arithmetic, left, right, meter_));
}

Result<Arguments> Evaluator::arguments_of(const Expression& expression, Scope& scope) {
  Arguments arguments;
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    arguments.positional.push_back(SL_TRY(evaluate(*expression.children[i], scope)));
  }
  for (const Keyword& keyword : expression.keywords) {
    arguments.named.emplace_back(keyword.name, SL_TRY(evaluate(*keyword.value, scope)));
  }
  return arguments;
}

Result<Value> Evaluator::evaluate_call(const Expression& expression, Scope& scope,
                                       const Value* caller) {
  const Value callee = SL_TRY(evaluate(*expression.children[0], scope));
  Arguments arguments = SL_TRY(arguments_of(expression, scope));
  // The body of a call block is the keyword argument "caller" of the macro.
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (const auto* method = callee.get_if<std::shared_ptr<const BoundMethod>>()) {
    return located(expression.line, python::call_method(**method, arguments, meter_));
  }
  if (const auto* macro = dynamic_cast<const Macro*>(callee.as_foreign())) {
    return call_macro(*macro, arguments);
  }
  if (const auto* function = dynamic_cast<const Function*>(callee.as_foreign())) {
    auto result = call_function(*function, arguments);
    // The message of the model's template reaches the client without a line number.
    if (function->name() == FunctionName::RaiseException) return result;
    return located(expression.line, std::move(result));
  }
  return located(expression.line,
                 Result<Value>(python::type_error(
                     callee, "'" + std::string(callee.type_name()) + "' object is not callable")));
}

Result<Value> Evaluator::evaluate_filter(const Expression& expression, Scope& scope,
                                         const Value* base) {
  const ExpressionPtr& inner = expression.children[0];
  Value value;
  if (inner == nullptr) {
    SL_CHECK(base != nullptr);
    value = *base;
  } else if (base != nullptr) {
    // Every level of the chain down to the missing value is a filter.
    value = SL_TRY(evaluate_filter(*inner, scope, base));
  } else {
    value = SL_TRY(evaluate(*inner, scope));
  }
  const Arguments arguments = SL_TRY(arguments_of(expression, scope));
  return located(expression.line,
                 filters::apply_filter({expression.name, value, arguments, meter_}));
}

Result<Value> Evaluator::evaluate_test(const Expression& expression, Scope& scope) {
  const Value value = SL_TRY(evaluate(*expression.children[0], scope));
  const Arguments arguments = SL_TRY(arguments_of(expression, scope));
  return Value::boolean(SL_TRY(
      located(expression.line, filters::apply_test({expression.name, value, arguments, meter_}))));
}

}  // namespace sightline::jinja
