// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/object/value.h"

namespace sightline::desired {

// Puts a user's pod template over ours as kubectl apply would: objects are merged, lists of named
// things (containers, volumes, env, …) by their name, null removes, the rest is replaced. What is
// new stands behind what is ours.
void merge_pod_template(object::Value& ours, const object::Value& users);

// What a user's template must not touch, by field: how our programs are started and asked, their
// names, labels, configuration and secrets. Empty: nothing. `container` is ours by name; an agent
// beside it is too.
std::vector<std::string> fights(const object::Value& users, std::string_view container);

}  // namespace sightline::desired
