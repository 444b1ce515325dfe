// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/crd/spec.h"

// Decides how many workers each revision gets next. Stateless: the plan follows only from the
// observed state. A crash, a revert or a changed spec in mid roll-out needs no other memory.
namespace sightline::plan {

// The workers of one pool of one revision, as observed.
struct PoolCount {
  // What its controller is asked for.
  std::int64_t wanted = 0;
  // The existing pods. Terminating ones count, because they occupy their GPUs.
  std::int64_t pods = 0;
  // The pods that are not terminating and that a quorum of the routers admits.
  std::int64_t routable = 0;

  bool operator==(const PoolCount&) const = default;
};

// By pool.
using Counts = std::map<std::string, PoolCount>;
// By pool.
using Replicas = std::map<std::string, std::int64_t>;

// A revision as observed.
struct Revision {
  std::string name;
  Counts pools;
  // Routable workers that others operate. Several revisions may share them.
  std::int64_t lent = 0;
};

// What the spec asks for. Pools that it does not name must end.
struct RolloutTarget {
  std::string revision;
  Replicas replicas;
};

// The rules of spec.rollout and spec.suspend.
struct Rules {
  crd::Strategy strategy = crd::Strategy::Rolling;
  std::int64_t max_surge = 0;
  std::int64_t max_unavailable = 1;
  bool is_paused = false;
  bool is_suspended = false;
};

// The state of a roll-out.
enum class Phase : std::uint8_t {
  // Only the target has pods, and all of them are routable.
  Completed,
  // A change is needed, or is not complete.
  Moving,
  Paused,
  Suspended,
};

// The next step.
struct Plan {
  // By revision: what controllers are asked for from now on.
  std::map<std::string, Replicas> replicas;
  Phase phase = Phase::Moving;
  // Describes the step, for the status.
  std::string message;
};

// Decides the next step. Pure. With two revisions that have pods:
// 1. The target's pools grow up to max_surge. Terminating pods count.
// 2. Then the other's pools shrink down to max_unavailable. Only routable workers count.
//
// Pools progress together, within one worker of each other. So no role of a revision disappears
// while others remain. A third revision waits until one of the other two is gone, the one with
// fewer routable workers. The order of the revisions does not matter. Lent workers do not count,
// with one exception: the target is not complete while another revision uses them.
Plan next(const RolloutTarget& target, const std::vector<Revision>& observed, const Rules& rules);

// How many of `frontends` each revision gets, by its share of routable workers, lent ones included.
// The target, and each revision with routable workers, gets at least one, so the sum may exceed
// `frontends`. Pure.
std::map<std::string, std::int64_t> frontends_of(std::int64_t frontends,
                                                 const RolloutTarget& target,
                                                 const std::vector<Revision>& observed);

}  // namespace sightline::plan
