// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/metadata.h"

#include <string>

namespace sightline::object {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

}  // namespace

Key key_of(const Value& object) {
  const Value& metadata = object["metadata"];
  return {std::string(metadata["namespace"].text()), std::string(metadata["name"].text())};
}

std::string_view uid_of(const Value& object) { return object.at({"metadata", "uid"}).text(); }

std::string_view resource_version_of(const Value& object) {
  return object.at({"metadata", "resourceVersion"}).text();
}

std::string_view label_of(const Value& object, std::string_view name) {
  return object.at({"metadata", "labels", name}).text();
}

std::string_view annotation_of(const Value& object, std::string_view name) {
  return object.at({"metadata", "annotations", name}).text();
}

std::string_view controller_uid_of(const Value& object) {
  // The API server accepts only one owner with `controller`.
  for (const Value& owner : object.at({"metadata", "ownerReferences"}).items()) {
    if (owner["controller"].boolean().value_or(false)) return owner["uid"].text();
  }
  return {};
}

bool is_being_deleted(const Value& object) {
  return !object.at({"metadata", "deletionTimestamp"}).is_null();
}

void name_kind(Value& object, const Resource& resource) {
  object.set({"apiVersion"}, api_version_of(resource));
  object.set({"kind"}, resource.kind);
}

Value controller_reference(const Value& owner) {
  return Value::object({{"apiVersion", owner["apiVersion"]},
                        {"kind", owner["kind"]},
                        {"name", owner.at({"metadata", "name"})},
                        {"uid", owner.at({"metadata", "uid"})},
                        {"controller", true},
                        {"blockOwnerDeletion", true}});
}

void strip_for_cache(Value& object) {
  object.erase({"metadata", "managedFields"});
  object.erase({"metadata", "annotations", kLastApplied});
}

}  // namespace sightline::object
