// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/object_names.h"

namespace sightline::desired {

using object::Value;

std::string revision_name(const Owner& owner, std::string_view revision, std::string_view part) {
  return owner.name + "-" + std::string(revision) + "-" + std::string(part);
}

std::string shared_name(const Owner& owner, std::string_view part) {
  return owner.name + "-" + std::string(part);
}

Value selector_labels(const Owner& owner, std::string_view component, std::string_view revision,
                      std::string_view pool) {
  Value labels = Value::object();
  labels.member(kRouterLabel) = owner.name;
  labels.member(kComponentLabel) = component;
  if (!revision.empty()) labels.member(kRevisionLabel) = revision;
  if (!pool.empty()) labels.member(kPoolLabel) = pool;
  return labels;
}

Value labels(const Owner& owner, std::string_view component, std::string_view revision,
             std::string_view pool) {
  Value labels = selector_labels(owner, component, revision, pool);
  labels.member("app.kubernetes.io/name") = "sightline";
  labels.member("app.kubernetes.io/instance") = owner.name;
  labels.member(kManagerLabel) = kManager;
  return labels;
}

}  // namespace sightline::desired
