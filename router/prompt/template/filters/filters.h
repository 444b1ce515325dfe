// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/methods.h"

namespace sightline::filters {

// The call of a filter or test by its name. The references must live as long as the call.
struct Application {
  std::string_view name;
  const python::Value& value;
  const python::Arguments& arguments;
  python::Meter& meter;
};

// A row of a table of filters.
struct NamedFilter {
  std::string_view name;
  // Runs the filter. It gets the whole application, because some rows share a function.
  Result<python::Value> (*run)(const Application& filter);
};
// The filters that visit items: join, map, select, sort and others. apply_filter() includes them.
std::span<const NamedFilter> sequence_filters();

// Applies one of Jinja2 3.1's built-in filters, or tojson of transformers. Lazy filters compute all
// items immediately, and return a Generator.
//
// Errors: InvalidArgument with Python's wording, blamed on the client. Unsupported for an unknown
// name, because Jinja2 may have a filter that this interpreter lacks.
Result<python::Value> apply_filter(const Application& application);

// Applies one of Jinja2 3.1's built-in tests, or an operator by its name, for example "==". Errors:
// as apply_filter().
Result<bool> apply_test(const Application& application);

}  // namespace sightline::filters
