// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/python_value.h"

namespace sightline::python {

// Appends `str(value)` or `repr(value)`, or returns it. If the meter is exhausted, the text may be
// incomplete.
void append_str(std::string& out, const Value& value, Meter& meter);
void append_repr(std::string& out, const Value& value, Meter& meter);
// Return the text instead of appending it.
std::string str_of(const Value& value, Meter& meter);
std::string repr_of(const Value& value, Meter& meter);

// Returns `repr(number)`: the shortest digits that give the same number when they are read.
std::string repr_of(double number);

// The arguments of `json.dumps`.
struct JsonStyle {
  // Escapes all characters above ASCII.
  bool ensure_ascii = false;
  // Sorts the keys of each dict.
  bool sort_keys = false;
  // The indentation of one level. If absent, everything is on one line.
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Appends `json.dumps(value)`. Errors: InvalidArgument with Python's wording for values without a
// form in JSON.
Result<Done> append_json(std::string& out, const Value& value, const JsonStyle& style,
                         Meter& meter);

}  // namespace sightline::python
