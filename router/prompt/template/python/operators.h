// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/value.h"

// Python's operators. Errors are InvalidArgument with Python's wording, blamed on the client: a
// value of a kind that the operator does not take comes from the request. Integers beyond 64 bits
// are an error (Unsupported).
namespace sightline::python {

// a == b
bool equals(const Value& a, const Value& b, Meter& meter);
// a < b
Result<bool> less(const Value& a, const Value& b, Meter& meter);
enum class Ordering : std::uint8_t { Less, LessEqual, Greater, GreaterEqual };
Result<bool> compare(Ordering ordering, const Value& a, const Value& b, Meter& meter);
// item in container
Result<bool> contains(const Value& container, const Value& item, Meter& meter);

enum class Arithmetic : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power
};
Result<Value> arithmetic(Arithmetic operation, const Value& a, const Value& b, Meter& meter);
Result<Value> negate(const Value& value);

// value.name as Jinja2 reads it: a method first, then an item; Undefined if neither exists.
Result<Value> attribute_of(const Value& value, std::string_view name);
// value[key] as Jinja2 reads it: an item first, then a method; Undefined if neither exists.
Result<Value> item_of(const Value& value, const Value& key);

// Bounds of value[start:stop:step]; absent ones are None.
struct Slice {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::optional<std::int64_t> step;
};
Result<Value> slice(const Value& value, const Slice& bounds, Meter& meter);

// len(value)
Result<std::int64_t> length_of(const Value& value);
// list(value): items, keys of a dict, characters of a text; nothing for Undefined.
Result<std::vector<Value>> items_of(const Value& value, Meter& meter);

// The error of using a value that does not exist, else a TypeError with this text.
Error type_error(const Value& culprit, std::string message);

}  // namespace sightline::python
