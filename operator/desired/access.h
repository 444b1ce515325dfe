// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// The identity of the pods for the API server.
namespace sightline::desired {

// The name of the ServiceAccount of a component's pods.
std::string service_account(const Owner& owner, std::string_view component);

// One ServiceAccount for each component, for all revisions. It has no role, and no pod mounts its
// token: our pods never call the API server. Policies and admission can distinguish components by
// it.
std::vector<object::Value> service_accounts(const RenderInput& input);

}  // namespace sightline::desired
