// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/crd/spec.h"

// How many workers each revision is to have next. Stateless: all follows from what is observed, so
// that a crash, a revert or another spec in the middle of a roll-out needs no memory of it.
namespace sightline::plan {

// Workers of one pool of one revision, as observed.
struct Count {
  std::int64_t wanted = 0;    // what its controller is asked for
  std::int64_t pods = 0;      // that are there, those that end included: they hold their GPUs
  std::int64_t routable = 0;  // of those that do not end: admitted by a quorum of the routers

  bool operator==(const Count&) const = default;
};

using Counts = std::map<std::string, Count>;           // by pool
using Replicas = std::map<std::string, std::int64_t>;  // by pool

struct Revision {
  std::string name;
  Counts pools;
  // Workers that somebody else runs, which several revisions may have, and that are routable here.
  std::int64_t lent = 0;
};

// What the spec asks for. Pools that it does not name are to end.
struct Target {
  std::string revision;
  Replicas replicas;
};

struct Rules {
  crd::Strategy strategy = crd::Strategy::Rolling;
  std::int64_t max_surge = 0;
  std::int64_t max_unavailable = 1;
  bool is_paused = false;
  bool is_suspended = false;
};

enum class Phase : std::uint8_t {
  Completed,  // the target alone has pods, and all of them are routable
  Moving,     // something is to be changed, or was and is not there yet
  Paused,
  Suspended,
};

struct Plan {
  std::map<std::string, Replicas>
      replicas;  // by revision: what controllers are asked for from now on
  Phase phase = Phase::Moving;
  std::string message;  // the step, for status
};

// The next step. Of two revisions with pods, the target's pools grow as far as max_surge allows,
// counting pods that end, and then the other's shrink as far as max_unavailable allows, counting
// routable workers only; pools keep pace with each other to within one worker, so that no role of a
// revision is gone while others are left. A third revision waits until the one of the two with
// fewer routable workers is gone. The order of the revisions does not matter. What is lent is not
// counted, but for this: the target is not complete while another revision uses it.
Plan next(const Target& target, const std::vector<Revision>& observed, const Rules& rules);

// How many of `frontends` each revision gets, by its share of routable workers, those that are lent
// included; one at least of the target and of each that has such workers, so there may be more than
// `frontends`.
std::map<std::string, std::int64_t> frontends_of(std::int64_t frontends, const Target& target,
                                                 const std::vector<Revision>& observed);

}  // namespace sightline::plan
