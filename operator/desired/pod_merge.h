// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/object/value.h"

namespace sightline::desired {

// Merges a user's pod template into ours, as kubectl apply would. Objects are merged, and lists of
// named elements (containers, volumes, env, …) by name. null removes, other values replace. New
// elements come after ours.
void merge_pod_template(object::Value& ours, const object::Value& users);

// The fields of a user's template that it must not set: how our programs start and are probed,
// their names, labels, configuration and secrets. Empty: there are no conflicts. `container` is the
// name of our container. An agent beside it is ours too.
std::vector<std::string> fights(const object::Value& users, std::string_view container);

}  // namespace sightline::desired
