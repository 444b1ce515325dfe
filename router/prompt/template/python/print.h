// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/value.h"

namespace sightline::python {

// str(value) and repr(value), appended.
void append_str(std::string& out, const Value& value, Meter& meter);
void append_repr(std::string& out, const Value& value, Meter& meter);
std::string str_of(const Value& value, Meter& meter);
std::string repr_of(const Value& value, Meter& meter);

// repr(float): the shortest digits that read back as the same number.
std::string repr_of(double number);

// Arguments of json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  // Text of one level; absent: all on one line.
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// json.dumps(value), appended. Errors: InvalidArgument with Python's wording for values that JSON
// has no form for.
Result<Done> append_json(std::string& out, const Value& value, const JsonStyle& style,
                         Meter& meter);

}  // namespace sightline::python
