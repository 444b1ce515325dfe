// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/python_value.h"

// Python's operators. Errors are InvalidArgument with Python's wording, and blame the client,
// because values of a wrong kind come from the request. Integers above 64 bits give Unsupported.
namespace sightline::python {

// Computes `a == b`. False if the meter is exhausted.
bool equals(const Value& a, const Value& b, Meter& meter);
// Computes `a < b`.
Result<bool> less(const Value& a, const Value& b, Meter& meter);
// The ordering operators: `a < b`, `a <= b`, `a > b`, `a >= b`.
enum class Ordering : std::uint8_t { Less, LessEqual, Greater, GreaterEqual };
Result<bool> compare(Ordering ordering, const Value& a, const Value& b, Meter& meter);
// Computes `item in container`.
Result<bool> contains(const Value& container, const Value& item, Meter& meter);

// The arithmetic operators: `+`, `-`, `*`, `/`, `//`, `%` and `**`.
enum class Arithmetic : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power
};
// Computes `a operation b`. A text has the operators `+`, `*` and `%`, a list or tuple `+` and `*`.
Result<Value> arithmetic(Arithmetic operation, const Value& a, const Value& b, Meter& meter);
// Computes `-value`.
Result<Value> negate(const Value& value);

// Reads `value.name` as Jinja2 does: first a method, then an item. The result is Undefined if
// neither exists.
Result<Value> attribute_of(const Value& value, std::string_view name);
// Reads `value[key]` as Jinja2 does: first an item, then a method. The result is Undefined if
// neither exists.
Result<Value> item_of(const Value& value, const Value& key);

// The bounds of `value[start:stop:step]`. Python's `None` is an absent bound.
struct Slice {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::optional<std::int64_t> step;
};
// Computes a slice of a text, list or tuple.
Result<Value> slice(const Value& value, const Slice& bounds, Meter& meter);

// Computes `len(value)`, 0 for Undefined.
Result<std::int64_t> length_of(const Value& value);
// Computes `list(value)`: the items of a sequence, the keys of a dict or the characters of a text.
// Undefined has no items.
Result<std::vector<Value>> items_of(const Value& value, Meter& meter);

// Returns the error of using `culprit`, if it is Undefined. Otherwise it returns a TypeError with
// this message.
Error type_error(const Value& culprit, std::string message);

}  // namespace sightline::python
