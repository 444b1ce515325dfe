// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>

#include "router/prompt/template/jinja/evaluator.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"

namespace sightline::jinja {
namespace {

// The cost of a for statement itself. The object behind `loop` is kept until the end of the
// rendering.
constexpr std::uint64_t kLoopSteps = 10;

}  // namespace

Evaluator::Evaluator(const Value& variables, const RenderOptions& options)
    : variables_(variables), options_(options), meter_(options.steps_max) {}

Result<std::string> Evaluator::run(const Syntax& syntax) {
  std::string out;
  Scope& root = open_scope(nullptr);
  SL_TRY(execute(syntax.body, root, out));
  SL_TRY(check_limits(0));
  return out;
}

Result<Done> Evaluator::check_limits(std::uint32_t line) const {
  if (!meter_.is_exhausted()) return Done{};
  return error_at(line, ErrorCode::TooLarge,
                  "the chat template needs more than " + std::to_string(options_.steps_max) +
                      " steps for this request");
}

Result<Done> Evaluator::descend(std::size_t levels, std::uint32_t line) {
  // An error ends the rendering, so the depth is not restored after it.
  depth_ += levels;
  if (depth_ <= kEvaluationDepthMax) return Done{};
  return error_at(line, ErrorCode::TooLarge, "maximum recursion depth exceeded");
}

// Scopes are reused, because each iteration of a loop needs one.
Scope& Evaluator::open_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    scopes_.push_back(std::make_unique<Scope>());
    free_scopes_.push_back(scopes_.back().get());
  }
  Scope& scope = *free_scopes_.back();
  free_scopes_.pop_back();
  scope.parent = parent;
  return scope;
}

void Evaluator::close_scope(Scope& scope) {
  // A macro still refers to this scope.
  if (scope.is_captured) return;
  scope.variables.clear();
  free_scopes_.push_back(&scope);
}

Result<Done> Evaluator::append(std::string& out, std::string_view text) const {
  // The subtraction cannot underflow, because it stops at 0.
  if (text.size() > options_.output_bytes_max - std::min(options_.output_bytes_max, out.size())) {
    return client_error(
        ErrorCode::TooLarge,
        "the prompt is longer than " + std::to_string(options_.output_bytes_max) + " bytes");
  }
  // Reserves more room than needed. Most of a prompt is one long text, followed by a few words.
  const std::size_t size = out.size() + text.size();
  if (size > out.capacity()) out.reserve(size + size / 4);
  out += text;
  return Done{};
}

Result<Evaluator::Flow> Evaluator::execute(const Block& block, Scope& scope, std::string& out) {
  if (block.empty()) return Flow::Next;
  SL_TRY(descend(1, block.front().line));
  Flow flow = Flow::Next;
  for (const Statement& statement : block) {
    if (!meter_.spend()) return check_limits(statement.line).error();
    flow = SL_TRY(execute_statement(statement, scope, out));
    if (flow != Flow::Next) break;
  }
  --depth_;
  return flow;
}

Result<Evaluator::Flow> Evaluator::execute_statement(const Statement& statement, Scope& scope,
                                                     std::string& out) {
  switch (statement.kind) {
    case StatementKind::Text:
      SL_TRY(append(out, statement.text));
      break;
    case StatementKind::Print:
      SL_TRY(print(statement, scope, out));
      break;
    case StatementKind::If:
      return execute_if(statement, scope, out);
    case StatementKind::For:
      return execute_for(statement, scope, out);
    case StatementKind::Set:
    case StatementKind::SetBlock:
      SL_TRY(execute_set(statement, scope));
      break;
    case StatementKind::With:
      SL_TRY(execute_with(statement, scope, out));
      break;
    case StatementKind::Macro:
      SL_TRY(define_macro(statement, scope));
      break;
    case StatementKind::CallBlock:
      SL_TRY(execute_call_block(statement, scope, out));
      break;
    case StatementKind::FilterBlock:
    case StatementKind::Scope: {
      const Value text = SL_TRY(captured_text(statement, scope));
      SL_TRY(append(out, python::str_of(text, meter_)));
      break;
    }
    case StatementKind::Break:
      return Flow::Break;
    case StatementKind::Continue:
      return Flow::Continue;
  }
  return Flow::Next;
}

Result<Done> Evaluator::print(const Statement& statement, Scope& scope, std::string& out) {
  const Value value = SL_TRY(evaluate(*statement.expression, scope));
  // A text goes to the output without a copy in between.
  if (const auto text = value.as_text()) return append(out, *text);
  return append(out, python::str_of(value, meter_));
}

Result<Evaluator::Flow> Evaluator::execute_if(const Statement& statement, Scope& scope,
                                              std::string& out) {
  if (SL_TRY(evaluate(*statement.expression, scope)).is_true()) {
    return execute(statement.body, scope, out);
  }
  for (const Statement& branch : statement.branches) {
    if (SL_TRY(evaluate(*branch.expression, scope)).is_true()) {
      return execute(branch.body, scope, out);
    }
  }
  return execute(statement.otherwise, scope, out);
}

Result<Evaluator::Flow> Evaluator::execute_for(const Statement& statement, Scope& scope,
                                               std::string& out) {
  const Value iterated = SL_TRY(evaluate(*statement.expression, scope));
  auto items = SL_TRY(located(statement.line, python::items_of(iterated, meter_)));
  // This pays for the Loop that the next line creates.
  meter_.spend(kLoopSteps);
  Loop& loop = own<Loop>(*this, statement, scope, std::move(items));
  // Jinja2 executes the else branch if no iteration ended normally. One that ends by break or
  // continue does not count.
  bool is_empty = true;
  while (SL_TRY(loop.advance())) {
    if (!meter_.spend()) return check_limits(statement.line).error();
    Scope& inner = open_scope(&scope);
    inner.set("loop", Value::foreign(&loop));
    SL_TRY(located(statement.line, assign(statement.target, loop.current(), inner)));
    const Flow flow = SL_TRY(execute(statement.body, inner, out));
    close_scope(inner);
    if (flow == Flow::Break) break;
    if (flow == Flow::Next) is_empty = false;
  }
  return is_empty ? execute(statement.otherwise, scope, out) : Result<Flow>(Flow::Next);
}

Result<Done> Evaluator::execute_set(const Statement& statement, Scope& scope) {
  const Value value = statement.kind == StatementKind::Set
                          ? SL_TRY(evaluate(*statement.expression, scope))
                          : SL_TRY(captured_text(statement, scope));
  return located(statement.line, assign(statement.target, value, scope));
}

Result<Value> Evaluator::captured_text(const Statement& statement, Scope& scope) {
  std::string text;
  Scope& inner = open_scope(&scope);
  SL_TRY(execute(statement.body, inner, text));
  const Value value = Value::text(std::move(text));
  const bool has_filter = statement.expression != nullptr;
  const Value result =
      has_filter ? SL_TRY(evaluate_filter(*statement.expression, inner, &value)) : value;
  close_scope(inner);
  return result;
}

Result<Done> Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const auto items = SL_TRY(python::items_of(value, meter_));
    if (items.size() != target.parts.size()) {
      const std::string expected = std::to_string(target.parts.size());
      return client_error(ErrorCode::InvalidArgument,
                          items.size() < target.parts.size()
                              ? "not enough values to unpack (expected " + expected + ", got " +
                                    std::to_string(items.size()) + ")"
                              : "too many values to unpack (expected " + expected + ")");
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      SL_TRY(assign(target.parts[i], items[i], scope));
    }
    return Done{};
  }
  if (target.attribute.empty()) {
    scope.set(target.name, value);
    return Done{};
  }
  // Assignments to an attribute change a namespace, and never a value.
  const Value object = SL_TRY(look_up(target.name, scope));
  auto* made = dynamic_cast<Namespace*>(object.as_foreign());
  if (made == nullptr) {
    return client_error(ErrorCode::InvalidArgument,
                        "cannot assign attribute on non-namespace object");
  }
  return made->set(target.attribute, value);
}

Result<Done> Evaluator::execute_with(const Statement& statement, Scope& scope, std::string& out) {
  Scope& inner = open_scope(&scope);
  for (const Parameter& parameter : statement.parameters) {
    // The values see only the outer scope (Jinja2 since 2.9).
    inner.set(parameter.target.name, SL_TRY(evaluate(*parameter.value, scope)));
  }
  SL_TRY(execute(statement.body, inner, out));
  close_scope(inner);
  return Done{};
}

Result<Done> Evaluator::define_macro(const Statement& statement, Scope& scope) {
  // The macro may be called after its block has ended. It then looks names up in these scopes.
  for (Scope* at = &scope; at != nullptr; at = at->parent) at->is_captured = true;
  scope.set(statement.text, Value::foreign(&own<Macro>(statement, scope)));
  return Done{};
}

Result<Done> Evaluator::execute_call_block(const Statement& statement, Scope& scope,
                                           std::string& out) {
  // The body runs later, as caller(), and looks names up in these scopes.
  for (Scope* at = &scope; at != nullptr; at = at->parent) at->is_captured = true;
  const Value caller = Value::foreign(&own<Macro>(statement, scope));
  const Value result = SL_TRY(evaluate_call(*statement.expression, scope, &caller));
  return append(out, python::str_of(result, meter_));
}

Result<Value> Evaluator::call_macro(const Macro& macro, const python::Arguments& arguments) {
  const Statement& definition = macro.definition();
  SL_TRY(descend(kMacroDepth, definition.line));
  const auto& parameters = definition.parameters;
  if (arguments.positional.size() > parameters.size()) {
    return error_at(definition.line, ErrorCode::InvalidArgument,
                    "macro '" + definition.text + "' takes not more than " +
                        std::to_string(parameters.size()) + " argument(s)");
  }
  Scope& scope = open_scope(&macro.scope());
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    scope.set(parameters[i].target.name, arguments.positional[i]);
  }
  for (const auto& [name, value] : arguments.named) {
    const bool is_parameter = std::any_of(
        parameters.begin(), parameters.end(),
        [name = name](const Parameter& parameter) { return parameter.target.name == name; });
    // A second value for the same parameter is an error as well.
    if ((!is_parameter && name != "caller") || scope.find_here(name) != nullptr) {
      return error_at(
          definition.line, ErrorCode::InvalidArgument,
          "macro '" + definition.text + "' takes no keyword argument '" + std::string(name) + "'");
    }
    scope.set(name, value);
  }
  // Defaults are evaluated in the macro's own scope, after the arguments are set.
  for (const Parameter& parameter : parameters) {
    const std::string_view name = parameter.target.name;
    if (scope.find_here(name) != nullptr) continue;
    scope.set(name,
              parameter.value != nullptr
                  ? SL_TRY(evaluate(*parameter.value, scope))
                  : Value::undefined("parameter '" + std::string(name) + "' was not provided"));
  }
  std::string out;
  SL_TRY(execute(definition.body, scope, out));
  close_scope(scope);
  depth_ -= kMacroDepth;
  return Value::text(std::move(out));
}

Result<Done> Loop::look_ahead(std::size_t count) {
  while (ahead_.size() < count && next_ < items_.size()) {
    const Value& item = items_[next_++];
    if (statement_.condition != nullptr) {
      Scope& scope = evaluator_.open_scope(&scope_);
      SL_TRY(located(statement_.line, evaluator_.assign(statement_.target, item, scope)));
      const bool passes = SL_TRY(evaluator_.evaluate(*statement_.condition, scope)).is_true();
      evaluator_.close_scope(scope);
      if (!passes) continue;
    }
    ahead_.push_back(item);
  }
  return Done{};
}

Result<bool> Loop::advance() {
  SL_TRY(look_ahead(1));
  previous_ = std::move(current_);
  current_.reset();
  if (ahead_.empty()) return false;
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  ++index0_;
  return true;
}

Result<std::int64_t> Loop::length() {
  // The number of items is known only after all of them were filtered.
  SL_TRY(look_ahead(items_.size()));
  return index0_ + 1 + static_cast<std::int64_t>(ahead_.size());
}

Result<Value> Loop::attribute(std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "length") return Value::integer(SL_TRY(length()));
  if (name == "revindex") return Value::integer(SL_TRY(length()) - index0_);
  if (name == "revindex0") return Value::integer(SL_TRY(length()) - index0_ - 1);
  if (name == "last") {
    SL_TRY(look_ahead(1));
    return Value::boolean(ahead_.empty());
  }
  if (name == "previtem") {
    return previous_ ? *previous_ : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    SL_TRY(look_ahead(1));
    return ahead_.empty() ? Value::undefined("there is no next item") : ahead_.front();
  }
  if (name == "cycle" || name == "changed" || name == "depth" || name == "depth0") {
    return client_error(ErrorCode::Unsupported, "loop." + std::string(name) + " is not supported");
  }
  return Value::undefined("'LoopContext object' has no attribute '" + std::string(name) + "'");
}

}  // namespace sightline::jinja
