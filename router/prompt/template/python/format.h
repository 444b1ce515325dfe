// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/methods.h"
#include "router/prompt/template/python/value.h"

namespace sightline::python {

// pattern % arguments: conversions s r d i u x X o f F e E g G c %, flags "-+ 0#", width and
// precision; names in parentheses with a dict. Errors: InvalidArgument with Python's wording.
Result<Value> format_percent(const Value& pattern, const Value& arguments, Meter& meter);

// pattern.format(…): {}, {0}, {name}, doubled braces. Format specifications, conversions and
// attribute access are Unsupported.
Result<Value> format_braces(std::string_view pattern, const Arguments& arguments, Meter& meter);

}  // namespace sightline::python
