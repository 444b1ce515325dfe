// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string_view>

#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"

// The metadata that every Kubernetes object has. Pure. Views are valid while the object is
// unchanged. A missing value is empty.
namespace sightline::object {

[[nodiscard]] Key key_of(const Value& object);
[[nodiscard]] std::string_view uid_of(const Value& object);
[[nodiscard]] std::string_view resource_version_of(const Value& object);
[[nodiscard]] std::string_view label_of(const Value& object, std::string_view name);
[[nodiscard]] std::string_view annotation_of(const Value& object, std::string_view name);
// The UID of the owner that controls the object.
[[nodiscard]] std::string_view controller_uid_of(const Value& object);
// Whether the object has a deletionTimestamp.
[[nodiscard]] bool is_being_deleted(const Value& object);

// Adds kind and apiVersion, which the items of a list lack.
void name_kind(Value& object, const Resource& resource);

// An owner reference that makes the garbage collector delete an object after its owner.
[[nodiscard]] Value controller_reference(const Value& owner);

// Removes managedFields and the annotation of kubectl's client-side apply. Readers of a cache do
// not need them, and they may be half of the object.
void strip_for_cache(Value& object);

}  // namespace sightline::object
