// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/judge/cluster_state.h"
#include "operator/kube/object/value.h"

namespace sightline::judge {

// A list for a router, sent with PUT /v1/workers.
struct ListPush {
  std::string pod;
  // {"revision", "generation", "workers"}.
  object::Value body;
};

// The lists for all routers that answer and have another list than their revision's. The generation
// is that of a router which has this list, else one more than any router of the revision has. So
// the operator needs no memory. A router whose generation is far above the others' does not count.
// No list is pushed that would be empty only because its workers are not found, see
// is_list_unknown(). Pure.
std::vector<ListPush> lists_to_push(const ClusterState& cluster);

}  // namespace sightline::judge
