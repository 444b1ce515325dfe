// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "operator/crd/status.h"
#include "operator/judge/world.h"

// Whether all that is in one index is comparable. Pure.
namespace sightline::judge {

// The condition IndexConsistent: false if a worker's blocks have another size than its revision's,
// or if a member of a revision announces another model, key or block size than the others; the
// message names it. Unknown where no router answers.
crd::Condition index_consistent(const World& world);

// The block sizes that the workers of a pool tell, in all revisions.
std::set<std::int64_t> block_sizes_of(const World& world, const std::string& pool);

// Of a worker that is there and not admitted, the router's reason: "w3: replaying events"; empty:
// none is.
std::string why_not_routable(const World& world);

}  // namespace sightline::judge
