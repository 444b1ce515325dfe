// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/template/python/meter.h"
#include "router/prompt/template/python/value.h"

namespace sightline::python {

// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// The arguments by parameter, in the order of the names; null where not given. Errors as Python's
// for too many, unknown or missing ones. The result points into arguments.
Result<std::vector<const Value*>> bind(std::string_view function, const Arguments& arguments,
                                       std::initializer_list<std::string_view> parameters,
                                       std::size_t required_count);

// The name's entry in the table of methods that values of this kind have and the sandbox allows
// (none that changes its object); nothing if there is none.
std::optional<std::string_view> find_method(const Value& self, std::string_view name);

// Calls a method of text, list or dict with Python's result. Errors: InvalidArgument with Python's
// wording.
Result<Value> call_method(const BoundMethod& method, const Arguments& arguments, Meter& meter);

}  // namespace sightline::python
