// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "operator/crd/status.h"
#include "operator/judge/cluster_state.h"

// Checks whether all blocks in one index are comparable. Pure.
namespace sightline::judge {

// The condition IndexConsistent. False in two cases. A worker's block size differs from its
// revision's, or a member of a revision announces another model, key or block size than the others.
// The message names it. Unknown if no router answers.
crd::Condition index_consistent(const ClusterState& cluster);

// The block sizes that the workers of a pool report, in all revisions.
std::set<std::int64_t> block_sizes_of(const ClusterState& cluster, const std::string& pool);

// The router's reason for a worker that exists but is not admitted, for example "w3: replaying
// events". Empty: all workers are admitted.
std::string why_not_routable(const ClusterState& cluster);

}  // namespace sightline::judge
