// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "router/prompt/template/python/format.h"
#include "router/prompt/template/python/text.h"

namespace sightline::python {
namespace {

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Error too_big() {
  return client_error(ErrorCode::Unsupported, "integers beyond 64 bits are not supported");
}

std::string quoted_type(const Value& value) { return "'" + std::string(value.type_name()) + "'"; }

bool is_number(const Value& value) { return value.as_real().has_value(); }

Error unsupported_operands(std::string_view symbol, const Value& a, const Value& b) {
  return type_error(a.is_undefined() ? a : b, "unsupported operand type(s) for " +
                                                  std::string(symbol) + ": " + quoted_type(a) +
                                                  " and " + quoted_type(b));
}

bool equal_items(std::span<const Value> a, std::span<const Value> b, Meter& meter) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Value& x, const Value& y) { return equals(x, y, meter); });
}

bool equal_dicts(const Dict& a, const Dict& b, Meter& meter) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && equals(entry.second, *other, meter);
  });
}

// Compares two integers exactly. A double would round them.
bool equal_numbers(const Value& a, const Value& b) {
  const auto left = a.as_integer();
  const auto right = b.as_integer();
  if (left && right) return *left == *right;
  const auto* big_left = a.get_if<BigInteger>();
  const auto* big_right = b.get_if<BigInteger>();
  if (big_left != nullptr && big_right != nullptr) return *big_left->digits == *big_right->digits;
  // A BigInteger never fits into 64 bits. It differs from every other integer.
  if ((big_left != nullptr && right) || (big_right != nullptr && left)) return false;
  return *a.as_real() == *b.as_real();
}

Value join_sequences(const Sequence& a, const Sequence& b, Meter& meter) {
  std::vector<Value> items;
  if (!meter.spend(a.items->size() + b.items->size())) return Value();
  items.reserve(a.items->size() + b.items->size());
  items.insert(items.end(), a.items->begin(), a.items->end());
  items.insert(items.end(), b.items->begin(), b.items->end());
  return Value::list(std::move(items), a.kind);
}

Result<Value> add(const Value& a, const Value& b, Meter& meter) {
  if (const auto left = a.as_text()) {
    const auto right = b.as_text();
    if (!right) {
      return type_error(
          b, "can only concatenate str (not \"" + std::string(b.type_name()) + "\") to str");
    }
    // The result is charged before it is built.
    if (!meter.spend_text(left->size() + right->size())) return Value();
    std::string joined;
    joined.reserve(left->size() + right->size());
    return Value::text(std::move(joined.append(*left).append(*right)));
  }
  const Sequence* left = a.get_if<Sequence>();
  if (left != nullptr && left->kind <= SequenceKind::Tuple) {
    const Sequence* right = b.get_if<Sequence>();
    if (right != nullptr && right->kind == left->kind) return join_sequences(*left, *right, meter);
    const std::string kind(a.type_name());
    return type_error(b, "can only concatenate " + kind + " (not \"" + std::string(b.type_name()) +
                             "\") to " + kind);
  }
  return unsupported_operands("+", a, b);
}

Result<Value> repeat(const Value& value, std::int64_t count, Meter& meter) {
  const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  const auto is_affordable = [&](std::size_t size, std::size_t per_step) {
    // Limits the product to 64 bits.
    constexpr std::uint64_t kUnitsMax = 1ULL << 40U;
    if (size == 0 || times == 0) return true;
    // The meter has fewer steps, and so this ends the evaluation.
    if (times > kUnitsMax / size) return meter.spend(kUnitsMax);
    return meter.spend(1 + times * size / per_step);
  };
  if (const auto text = value.as_text()) {
    std::string out;
    if (text->empty() || !is_affordable(text->size(), Meter::kTextBytesPerStep)) {
      return Value::text({});
    }
    out.reserve(text->size() * times);
    for (std::uint64_t i = 0; i < times; ++i) out += *text;
    return Value::text(std::move(out));
  }
  const Sequence& sequence = *value.get_if<Sequence>();
  std::vector<Value> items;
  if (sequence.items->empty() || !is_affordable(sequence.items->size(), 1)) {
    return Value::list({}, sequence.kind);
  }
  items.reserve(sequence.items->size() * times);
  for (std::uint64_t i = 0; i < times; ++i) {
    items.insert(items.end(), sequence.items->begin(), sequence.items->end());
  }
  return Value::list(std::move(items), sequence.kind);
}

bool is_repeatable(const Value& value) {
  const Sequence* sequence = value.get_if<Sequence>();
  return value.as_text() || (sequence != nullptr && sequence->kind <= SequenceKind::Tuple);
}

// Division and remainder round towards minus infinity, as in Python.
Result<Value> divide_integers(Arithmetic operation, std::int64_t a, std::int64_t b) {
  if (b == 0) return invalid("integer division or modulo by zero");
  // The quotient of the smallest integer and -1 overflows. The CPU would raise an exception.
  if (b == -1) {
    if (operation == Arithmetic::Modulo) return Value::integer(0);
    if (a == std::numeric_limits<std::int64_t>::min()) return too_big();
    return Value::integer(-a);
  }
  const std::int64_t remainder = a % b;
  const bool is_off = remainder != 0 && (remainder < 0) != (b < 0);
  if (operation == Arithmetic::Modulo) return Value::integer(is_off ? remainder + b : remainder);
  return Value::integer(a / b - (is_off ? 1 : 0));
}

Result<Value> power_of_integers(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return invalid("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  std::int64_t result = 1;
  // The loop ends soon: with a base of 2 or more it overflows after 63 steps.
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return too_big();
  }
  return Value::integer(result);
}

Result<Value> arithmetic_of_integers(Arithmetic operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Arithmetic::Add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Arithmetic::Subtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Arithmetic::Multiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Arithmetic::Divide:
      if (b == 0) return invalid("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Arithmetic::FloorDivide:
    case Arithmetic::Modulo:
      return divide_integers(operation, a, b);
    case Arithmetic::Power:
      return power_of_integers(a, b);
  }
  if (overflows) return too_big();
  return Value::integer(result);
}

Result<Value> arithmetic_of_reals(Arithmetic operation, double a, double b) {
  switch (operation) {
    case Arithmetic::Add:
      return Value::real(a + b);
    case Arithmetic::Subtract:
      return Value::real(a - b);
    case Arithmetic::Multiply:
      return Value::real(a * b);
    case Arithmetic::Power: {
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return invalid(a == 0 ? "0.0 cannot be raised to a negative power"
                              : "(34, 'Numerical result out of range')");
      }
      // Python returns a complex number here.
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) return too_big();
      return Value::real(result);
    }
    default:
      break;
  }
  if (b == 0) return invalid("float division by zero");
  if (operation == Arithmetic::Divide) return Value::real(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  // A zero remainder has the sign of the divisor in Python.
  if (operation == Arithmetic::Modulo) {
    return Value::real(remainder == 0 ? std::copysign(0.0, b) : remainder);
  }
  // The quotient is an integer except for rounding errors. Adding 0.5 before the floor removes
  // them.
  return Value::real(std::floor((a - remainder) / b + 0.5));
}

std::string_view symbol_of(Arithmetic operation) {
  static constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSymbols[static_cast<std::size_t>(operation)];
}

std::string_view symbol_of(Ordering ordering) {
  static constexpr std::string_view kSymbols[] = {"<", "<=", ">", ">="};
  return kSymbols[static_cast<std::size_t>(ordering)];
}

// Returns -1, 0 or 1 for texts and numbers, and 2 if one is NaN.
int order_of_scalars(const Value& a, const Value& b) {
  if (const auto text = a.as_text()) {
    // The order of UTF-8 bytes equals the order of code points.
    const int order = text->compare(*b.as_text());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const auto left = a.as_integer();
  const auto right = b.as_integer();
  if (left && right) return *left < *right ? -1 : *left > *right ? 1 : 0;
  const double x = *a.as_real();
  const double y = *b.as_real();
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool holds(Ordering ordering, int order) {
  switch (ordering) {
    case Ordering::Less:
      return order == -1;
    case Ordering::LessEqual:
      return order == -1 || order == 0;
    case Ordering::Greater:
      return order == 1;
    case Ordering::GreaterEqual:
      return order == 1 || order == 0;
  }
  return false;
}

}  // namespace

Error type_error(const Value& culprit, std::string message) {
  if (const Undefined* undefined = culprit.get_if<Undefined>()) return invalid(*undefined->reason);
  return invalid(std::move(message));
}

bool equals(const Value& a, const Value& b, Meter& meter) {
  if (!meter.spend()) return false;
  // A bool is a number, so True equals 1.
  if (is_number(a) || is_number(b)) return is_number(a) && is_number(b) && equal_numbers(a, b);
  if (const auto text = a.as_text()) return b.as_text() == text;
  if (const Sequence* sequence = a.get_if<Sequence>()) {
    const Sequence* other = b.get_if<Sequence>();
    // Two values that share their items are equal. This saves the comparison of large lists.
    return other != nullptr && other->kind == sequence->kind &&
           (other->items == sequence->items || equal_items(*sequence->items, *other->items, meter));
  }
  if (const Dict* dict = a.as_dict()) {
    return b.as_dict() != nullptr &&
           (b.as_dict() == dict || equal_dicts(*dict, *b.as_dict(), meter));
  }
  if (a.as_foreign() != nullptr) return a.as_foreign() == b.as_foreign();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Result<bool> compare(Ordering ordering, const Value& a, const Value& b, Meter& meter) {
  if (!meter.spend()) return false;
  const bool are_texts = a.as_text() && b.as_text();
  if (are_texts || (is_number(a) && is_number(b))) return holds(ordering, order_of_scalars(a, b));
  const Sequence* left = a.get_if<Sequence>();
  const Sequence* right = b.get_if<Sequence>();
  if (left != nullptr && right != nullptr && left->kind == right->kind &&
      left->kind <= SequenceKind::Tuple) {
    const auto& x = *left->items;
    const auto& y = *right->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      // The first different pair decides, as in Python.
      if (!equals(x[i], y[i], meter)) return compare(ordering, x[i], y[i], meter);
    }
    return holds(ordering, x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0);
  }
  return type_error(a.is_undefined() ? a : b, "'" + std::string(symbol_of(ordering)) +
                                                  "' not supported between instances of " +
                                                  quoted_type(a) + " and " + quoted_type(b));
}

Result<bool> less(const Value& a, const Value& b, Meter& meter) {
  return compare(Ordering::Less, a, b, meter);
}

Result<bool> contains(const Value& container, const Value& item, Meter& meter) {
  if (const auto text = container.as_text()) {
    const auto part = item.as_text();
    if (!part) {
      return invalid("'in <string>' requires string as left operand, not " +
                     std::string(item.type_name()));
    }
    meter.spend_text(text->size());
    return text->find(*part) != std::string_view::npos;
  }
  if (const Dict* dict = container.as_dict()) {
    if (!is_hashable(item)) return invalid("unhashable type: " + quoted_type(item));
    // The look-up of a text key is fast, but other keys are searched one by one.
    meter.spend(1 + dict->size() / Meter::kTextBytesPerStep);
    return dict->find(item) != nullptr;
  }
  if (const auto items = container.as_items()) {
    return std::any_of(items->begin(), items->end(),
                       [&](const Value& other) { return equals(item, other, meter); });
  }
  if (container.is_undefined()) return false;
  return invalid("argument of type " + quoted_type(container) + " is not iterable");
}

Result<Value> arithmetic(Arithmetic operation, const Value& a, const Value& b, Meter& meter) {
  // For a text, % formats it.
  if (operation == Arithmetic::Modulo && a.as_text()) return format_percent(a, b, meter);
  const auto left = a.as_integer();
  const auto right = b.as_integer();
  if (left && right) return arithmetic_of_integers(operation, *left, *right);
  if (operation == Arithmetic::Multiply) {
    if (is_repeatable(a) && right) return repeat(a, *right, meter);
    if (left && is_repeatable(b)) return repeat(b, *left, meter);
  }
  if (is_number(a) && is_number(b)) {
    const bool is_big = a.get_if<BigInteger>() != nullptr || b.get_if<BigInteger>() != nullptr;
    if (is_big) return too_big();
    return arithmetic_of_reals(operation, *a.as_real(), *b.as_real());
  }
  if (operation == Arithmetic::Add) return add(a, b, meter);
  return unsupported_operands(symbol_of(operation), a, b);
}

Result<Value> negate(const Value& value) {
  if (const auto integer = value.as_integer()) {
    return arithmetic_of_integers(Arithmetic::Subtract, 0, *integer);
  }
  if (const double* real = value.get_if<double>()) return Value::real(-*real);
  if (value.get_if<BigInteger>() != nullptr) return too_big();
  return type_error(value, "bad operand type for unary -: " + quoted_type(value));
}

}  // namespace sightline::python
