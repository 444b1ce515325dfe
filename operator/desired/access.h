// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// Who the pods are for the API server.
namespace sightline::desired {

// Name of the ServiceAccount of a component's pods.
std::string service_account(const Owner& owner, std::string_view component);

// One of each component, for all revisions. They have no role, and their tokens are mounted
// nowhere: no pod of ours asks the API server. Policies and admission can tell them apart.
std::vector<object::Value> service_accounts(const Scene& scene);

}  // namespace sightline::desired
