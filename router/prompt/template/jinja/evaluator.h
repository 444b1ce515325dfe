// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/jinja/syntax.h"
#include "router/prompt/template/jinja/template.h"
#include "router/prompt/template/python/methods.h"

namespace sightline::jinja {

// Adds the line to the error of an operation.
template <class T>
Result<T> located(std::uint32_t line, Result<T> result) {
  if (result.ok()) return result;
  return error_at(line, result.error().code, result.error().message);
}

// The variables of one block. The names are views of the syntax tree.
struct Scope {
  Scope* parent = nullptr;
  // True if a macro may look names up here after the block has ended. The scope is then not reused.
  bool is_captured = false;
  std::vector<std::pair<std::string_view, Value>> variables;

  // Returns a variable of this scope, without its parents, or null.
  [[nodiscard]] const Value* find_here(std::string_view name) const;
  // Sets a variable of this scope.
  void set(std::string_view name, Value value);
};

// namespace(…): the only kind of value that a template can change.
class Namespace final : public python::Foreign {
 public:
  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  [[nodiscard]] Result<Value> attribute(std::string_view name) override;
  // Errors: InvalidArgument for names that begin with an underscore, as in the sandbox of
  // transformers.
  Result<Done> set(std::string_view name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

// A macro, or the body of a call block, which the called macro sees as caller().
class Macro final : public python::Foreign {
 public:
  Macro(const Statement& definition, Scope& scope) : definition_(definition), scope_(scope) {}
  [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  [[nodiscard]] Result<Value> attribute(std::string_view name) override;
  [[nodiscard]] const Statement& definition() const { return definition_; }
  // The scope of its definition, where its free names are looked up.
  [[nodiscard]] Scope& scope() const { return scope_; }

 private:
  const Statement& definition_;
  Scope& scope_;
};

enum class FunctionName : std::uint8_t { Range, Dict, Namespace, RaiseException, StrftimeNow };

// A function that every template can call.
class Function final : public python::Foreign {
 public:
  explicit Function(FunctionName name) : name_(name) {}
  [[nodiscard]] std::string_view type_name() const override { return "function"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  [[nodiscard]] Result<Value> attribute(std::string_view name) override;
  [[nodiscard]] FunctionName name() const { return name_; }

 private:
  FunctionName name_;
};

class Evaluator;

// One run of a for statement, and the object that its body sees as `loop`. Items are filtered only
// when they are needed, because the condition may depend on the effects of the body.
class Loop final : public python::Foreign {
 public:
  Loop(Evaluator& evaluator, const Statement& statement, Scope& scope, std::vector<Value> items)
      : evaluator_(evaluator), statement_(statement), scope_(scope), items_(std::move(items)) {}

  // Moves to the next item. Returns false at the end.
  Result<bool> advance();
  [[nodiscard]] const Value& current() const { return *current_; }

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] Result<Value> attribute(std::string_view name) override;

 private:
  // Reads items that pass the condition until `count` of them wait, or until the end.
  Result<Done> look_ahead(std::size_t count);
  Result<std::int64_t> length();

  Evaluator& evaluator_;
  const Statement& statement_;
  Scope& scope_;
  std::vector<Value> items_;
  std::size_t next_ = 0;
  std::deque<Value> ahead_;
  std::optional<Value> previous_;
  std::optional<Value> current_;
  std::int64_t index0_ = -1;
};

// Renders a template once. Thread safety: one owner.
class Evaluator {
 public:
  Evaluator(const Value& variables, const RenderOptions& options);
  Result<std::string> run(const Syntax& syntax);

 private:
  friend class Loop;
  enum class Flow : std::uint8_t { Next, Break, Continue };

  // Statements. They append to `out`.
  Result<Flow> execute(const Block& block, Scope& scope, std::string& out);
  Result<Flow> execute_statement(const Statement& statement, Scope& scope, std::string& out);
  Result<Done> print(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> execute_if(const Statement& statement, Scope& scope, std::string& out);
  Result<Flow> execute_for(const Statement& statement, Scope& scope, std::string& out);
  Result<Done> execute_set(const Statement& statement, Scope& scope);
  Result<Done> execute_with(const Statement& statement, Scope& scope, std::string& out);
  Result<Done> execute_call_block(const Statement& statement, Scope& scope, std::string& out);
  Result<Done> define_macro(const Statement& statement, Scope& scope);
  // Returns the text of a block, which runs in a scope of its own. The filter of the statement, if
  // any, is applied.
  Result<Value> captured_text(const Statement& statement, Scope& scope);
  Result<Done> assign(const Target& target, const Value& value, Scope& scope);
  Result<Done> append(std::string& out, std::string_view text) const;

  // Expressions.
  Result<Value> evaluate(const Expression& expression, Scope& scope);
  Result<Value> evaluate_kind(const Expression& expression, Scope& scope);
  Result<Value> look_up(std::string_view name, const Scope& scope);
  Result<std::vector<Value>> evaluate_all(const Expression& expression, Scope& scope);
  Result<Value> evaluate_dict(const Expression& expression, Scope& scope);
  Result<Value> evaluate_slice(const Expression& expression, Scope& scope);
  Result<Value> evaluate_logic(const Expression& expression, Scope& scope);
  Result<Value> evaluate_comparison(const Expression& expression, Scope& scope);
  Result<Value> evaluate_concat(const Expression& expression, Scope& scope);
  Result<Value> evaluate_arithmetic(const Expression& expression, Scope& scope);
  Result<Value> evaluate_item(const Expression& expression, Scope& scope);
  Result<Value> evaluate_call(const Expression& expression, Scope& scope, const Value* caller);
  // `base` is the value that the innermost filter misses (filter blocks and set blocks).
  Result<Value> evaluate_filter(const Expression& expression, Scope& scope, const Value* base);
  Result<Value> evaluate_test(const Expression& expression, Scope& scope);
  Result<python::Arguments> arguments_of(const Expression& expression, Scope& scope);
  Result<Value> call_macro(const Macro& macro, const python::Arguments& arguments);
  Result<Value> call_function(const Function& function, const python::Arguments& arguments);

  // Adds levels of depth. The caller subtracts them when it returns without an error.
  Result<Done> descend(std::size_t levels, std::uint32_t line);
  Scope& open_scope(Scope* parent);
  void close_scope(Scope& scope);
  template <class T, class... Args>
  T& own(Args&&... args);
  Result<Done> check_limits(std::uint32_t line) const;

  const Value& variables_;
  const RenderOptions& options_;
  python::Meter meter_;
  std::size_t depth_ = 0;
  std::vector<std::unique_ptr<python::Foreign>> objects_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
};

template <class T, class... Args>
T& Evaluator::own(Args&&... args) {
  auto object = std::make_unique<T>(std::forward<Args>(args)...);
  T& reference = *object;
  objects_.push_back(std::move(object));
  return reference;
}

// Returns the function with a name: range, dict, namespace, raise_exception or strftime_now.
std::optional<FunctionName> find_function(std::string_view name);

// Formats a time as datetime.strftime does, with English names, in UTC.
std::string strftime(std::string_view format, WallTime time);

}  // namespace sightline::jinja
