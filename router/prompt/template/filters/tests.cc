// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>

#include "router/prompt/template/filters/filters.h"
#include "router/prompt/template/python/operators.h"
#include "router/prompt/template/python/print.h"
#include "router/prompt/template/python/text.h"

// The tests after "is".
namespace sightline::filters {
namespace {

using python::Ordering;
using python::SequenceKind;
using python::Value;

using Test = Result<bool> (*)(const Application& test);
struct NamedTest {
  std::string_view name;
  std::size_t argument_count;
  Test holds;
};

const Value& argument(const Application& test) { return test.arguments.positional.front(); }

Result<bool> is_defined(const Application& test) { return !test.value.is_undefined(); }
Result<bool> is_undefined(const Application& test) { return test.value.is_undefined(); }
Result<bool> is_none(const Application& test) { return test.value.is_none(); }
Result<bool> is_string(const Application& test) { return test.value.as_text().has_value(); }
Result<bool> is_mapping(const Application& test) { return test.value.as_dict() != nullptr; }
Result<bool> is_callable(const Application& test) { return test.value.is_callable(); }
Result<bool> is_number(const Application& test) { return test.value.as_real().has_value(); }
Result<bool> is_float(const Application& test) { return test.value.get_if<double>() != nullptr; }

Result<bool> is_boolean(const Application& test) {
  // The tests true and false hold only for bools, and not for 1 and 0.
  const bool* flag = test.value.get_if<bool>();
  if (test.name == "boolean") return flag != nullptr;
  return flag != nullptr && *flag == (test.name == "true");
}

Result<bool> is_integer(const Application& test) {
  // A bool is no integer in Jinja2, although Python's bool is a subclass of int.
  return test.value.get_if<std::int64_t>() != nullptr ||
         test.value.get_if<python::BigInteger>() != nullptr;
}

// True for values with a length and an index operator. Undefined has both, which fail only when
// they are used.
Result<bool> is_sequence(const Application& test) {
  const auto* sequence = test.value.get_if<python::Sequence>();
  if (sequence != nullptr) return sequence->kind <= SequenceKind::Tuple;
  return test.value.as_text() || test.value.as_dict() != nullptr || test.value.is_undefined();
}

Result<bool> is_iterable(const Application& test) {
  return test.value.as_items() || test.value.as_text() || test.value.as_dict() != nullptr ||
         test.value.is_undefined();
}

Result<bool> has_case(const Application& test) {
  // Jinja2 tests the printed value.
  const std::string text = python::str_of(test.value, test.meter);
  return test.name == "lower" ? python::is_lower(text) : python::is_upper(text);
}

Result<bool> is_same(const Application& test) {
  const Value& other = argument(test);
  // Python's `is` compares addresses. Here scalars are the same if they are equal.
  const bool are_scalars = test.value.depth() == 0 && other.depth() == 0;
  if (test.value.type_name() != other.type_name()) return false;
  if (are_scalars) return python::equals(test.value, other, test.meter);
  if (test.value.as_dict() != nullptr) return test.value.as_dict() == other.as_dict();
  const auto* sequence = test.value.get_if<python::Sequence>();
  const auto* other_sequence = other.get_if<python::Sequence>();
  return sequence != nullptr && other_sequence != nullptr &&
         sequence->items == other_sequence->items;
}

Result<bool> has_remainder(const Application& test) {
  const bool is_even_or_odd = test.arguments.positional.empty();
  const Value divisor = is_even_or_odd ? Value::integer(2) : argument(test);
  const Value remainder =
      SL_TRY(python::arithmetic(python::Arithmetic::Modulo, test.value, divisor, test.meter));
  const Value wanted = Value::integer(test.name == "odd" ? 1 : 0);
  return python::equals(remainder, wanted, test.meter);
}

Result<bool> is_equal(const Application& test) {
  const bool is_negated = test.name == "ne";
  return python::equals(test.value, argument(test), test.meter) != is_negated;
}

Result<bool> is_ordered(const Application& test) {
  static constexpr std::array<std::pair<std::string_view, Ordering>, 6> kOrderings{{
      {"lt", Ordering::Less},
      {"lessthan", Ordering::Less},
      {"le", Ordering::LessEqual},
      {"gt", Ordering::Greater},
      {"greaterthan", Ordering::Greater},
      {"ge", Ordering::GreaterEqual},
  }};
  const auto* found = std::find_if(kOrderings.begin(), kOrderings.end(),
                                   [&](const auto& entry) { return entry.first == test.name; });
  return python::compare(found->second, test.value, argument(test), test.meter);
}

Result<bool> is_contained(const Application& test) {
  return python::contains(argument(test), test.value, test.meter);
}

constexpr NamedTest kTests[] = {
    {"boolean", 0, is_boolean},
    {"callable", 0, is_callable},
    {"defined", 0, is_defined},
    {"divisibleby", 1, has_remainder},
    {"eq", 1, is_equal},
    {"equalto", 1, is_equal},
    {"even", 0, has_remainder},
    {"false", 0, is_boolean},
    {"float", 0, is_float},
    {"ge", 1, is_ordered},
    {"greaterthan", 1, is_ordered},
    {"gt", 1, is_ordered},
    {"in", 1, is_contained},
    {"integer", 0, is_integer},
    {"iterable", 0, is_iterable},
    {"le", 1, is_ordered},
    {"lessthan", 1, is_ordered},
    {"lower", 0, has_case},
    {"lt", 1, is_ordered},
    {"mapping", 0, is_mapping},
    {"ne", 1, is_equal},
    {"none", 0, is_none},
    {"number", 0, is_number},
    {"odd", 0, has_remainder},
    {"sameas", 1, is_same},
    {"sequence", 0, is_sequence},
    {"string", 0, is_string},
    {"true", 0, is_boolean},
    {"undefined", 0, is_undefined},
    {"upper", 0, has_case},
};

// Operators that may be the name of a test, for example select("==", 3).
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"==", "eq"}, {"!=", "ne"}, {"<", "lt"}, {"<=", "le"}, {">", "gt"}, {">=", "ge"}};

}  // namespace

Result<bool> apply_test(const Application& application) {
  std::string_view name = application.name;
  for (const auto& [alias, canonical] : kAliases) {
    if (name == alias) name = canonical;
  }
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const NamedTest& test) { return test.name == name; });
  if (found == std::end(kTests)) {
    return client_error(ErrorCode::Unsupported, "No test named '" + std::string(name) + "'.");
  }
  const auto& arguments = application.arguments;
  // Tests take no keyword arguments.
  if (!arguments.named.empty() || arguments.positional.size() != found->argument_count) {
    return client_error(ErrorCode::InvalidArgument, "test '" + std::string(name) + "' takes " +
                                                        std::to_string(found->argument_count) +
                                                        " arguments");
  }
  return found->holds(Application{found->name, application.value, arguments, application.meter});
}

}  // namespace sightline::filters
