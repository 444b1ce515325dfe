// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/python/methods.h"

namespace sightline::filters {

// A filter or test on a value, by name.
struct Application {
  std::string_view name;
  const python::Value& value;
  const python::Arguments& arguments;
  python::Meter& meter;
};

struct NamedFilter {
  std::string_view name;
  Result<python::Value> (*run)(const Application& filter);
};
// The filters that go through items: join, map, select, sort, …
std::span<const NamedFilter> sequence_filters();

// Jinja2 3.1's built-in filters, and transformers' tojson. Lazy ones are computed at once and give
// a Generator. Errors: InvalidArgument with Python's wording; Unsupported for an unknown name.
Result<python::Value> apply_filter(const Application& application);

// Jinja2 3.1's built-in tests. Errors as for filters.
Result<bool> apply_test(const Application& application);

}  // namespace sightline::filters
