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
#include "router/prompt/template/python/python_value.h"

namespace sightline::python {

// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  // Keyword arguments. Of two with one name, the call is an error.
  std::vector<std::pair<std::string_view, Value>> named;
};

// Returns the arguments by parameter, in the order of `parameters`. An absent one is null. The
// first required_count parameters must be present. The results point into `arguments`.
//
// Errors: InvalidArgument for too many, unknown or missing arguments, as in Python.
Result<std::vector<const Value*>> bind(std::string_view function, const Arguments& arguments,
                                       std::initializer_list<std::string_view> parameters,
                                       std::size_t required_count);

// Returns the name from the table of methods for values of this kind, or nothing. The table has
// only methods that the sandbox of transformers allows. No method in it changes its object.
std::optional<std::string_view> find_method(const Value& self, std::string_view name);

// Calls a method of a text, list or dict. The result equals Python's. Errors: InvalidArgument with
// Python's wording.
Result<Value> call_method(const BoundMethod& method, const Arguments& arguments, Meter& meter);

}  // namespace sightline::python
