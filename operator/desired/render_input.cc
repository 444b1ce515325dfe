// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/render_input.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::int64_t kDrainSecondsMax = 3600;

}  // namespace

std::string router_image(const RenderInput& input) {
  return input.spec.image.empty() ? input.images.router : input.spec.image;
}

std::int64_t seconds_of(const std::string& duration) {
  std::int64_t number = 0;
  const char* end = duration.data() + duration.size();
  const auto read = std::from_chars(duration.data(), end, number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
  // Rounded up, so a short time does not become 0.
  if (unit == "ms") return (number + 999) / 1000;
  if (unit == "m") return number * 60;
  if (unit == "h") return number * 3600;
  return number;
}

std::int64_t drain_seconds(const crd::Spec& spec) {
  return std::min(seconds_of(spec.rollout.drain_timeout), kDrainSecondsMax);
}

Value object_of(const Owner& owner, const Value& owner_reference, Title title) {
  Value object = Value::object();
  object.member("apiVersion") = title.api_version;
  object.member("kind") = title.kind;
  object.set({"metadata", "name"}, std::move(title.name));
  object.set({"metadata", "namespace"}, owner.name_space);
  object.set({"metadata", "labels"}, std::move(title.labels));
  object.set({"metadata", "ownerReferences"}, Value::array({owner_reference}));
  return object;
}

Value object_of(const RenderInput& input, Title title) {
  return object_of(input.owner, input.owner_reference, std::move(title));
}

}  // namespace sightline::desired
