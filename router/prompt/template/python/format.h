// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/methods.h"
#include "router/prompt/template/python/python_value.h"

namespace sightline::python {

// Computes `pattern % arguments`, where the pattern is a text. It supports these parts of a
// pattern:
// - the conversions s r d i u x X o f F e E g G %,
// - the flags "-+ 0#",
// - width and precision, at most 1000 each,
// - names in parentheses, with a dict as arguments.
//
// Errors: InvalidArgument with Python's wording, TooLarge for a width, Unsupported for other
// conversions.
Result<Value> format_percent(const Value& pattern, const Value& arguments, Meter& meter);

// Computes `pattern.format(arguments…)`. It supports {}, {0}, {name} and doubled braces. Format
// specifications, conversions and attribute access give Unsupported. Other errors: InvalidArgument
// with Python's wording.
Result<Value> format_braces(std::string_view pattern, const Arguments& arguments, Meter& meter);

}  // namespace sightline::python
