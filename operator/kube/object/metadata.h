// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string_view>

#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"

// What every Kubernetes object says about itself. Pure. Views live as long as the object is not
// changed; what is not said is empty.
namespace sightline::object {

[[nodiscard]] Key key_of(const Value& object);
[[nodiscard]] std::string_view uid_of(const Value& object);
[[nodiscard]] std::string_view resource_version_of(const Value& object);
[[nodiscard]] std::string_view label_of(const Value& object, std::string_view name);
[[nodiscard]] std::string_view annotation_of(const Value& object, std::string_view name);
// UID of the owner that controls it.
[[nodiscard]] std::string_view controller_uid_of(const Value& object);
[[nodiscard]] bool is_being_deleted(const Value& object);

// Adds kind and apiVersion, which items of a list are without.
void name_kind(Value& object, const Resource& resource);

// The owner reference by which the garbage collector deletes an object after its owner.
[[nodiscard]] Value controller_reference(const Value& owner);

// Takes off what no reader of a cache wants and what may be half of an object: managedFields, and
// the annotation of kubectl's client-side apply.
void strip_for_cache(Value& object);

}  // namespace sightline::object
