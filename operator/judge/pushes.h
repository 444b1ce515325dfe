// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/judge/world.h"
#include "operator/kube/object/value.h"

namespace sightline::judge {

// What a router is to be told by PUT /v1/workers.
struct ListPush {
  std::string pod;
  object::Value body;  // {"revision", "generation", "workers"}
};

// For every router that answers and holds another list than that of its revision. The generation
// is that of a router which holds this very list, else one more than any router of the revision
// holds, but for one that is far beyond the others: it needs no memory. None for a list that is
// empty only because its workers are not found (is_list_unknown()). Pure.
std::vector<ListPush> lists_to_push(const World& world);

}  // namespace sightline::judge
