// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/result.h"

#include "router/workers/fleet/snapshot.h"
#include "router/workers/lists/list_in_force.h"

namespace sightline::push {

// The check `learnt` of /readyz. It is done when the router knows everything about its workers, or
// `timeout` after the first look with a list. It stays done: workers that come later do not make a
// router unready. Call look() from the start on.
//
// Thread safety: any thread may call look().
class WarmupCheck {
 public:
  // `timeout` is the setting --ready-timeout.
  explicit WarmupCheck(Duration timeout) : timeout_(timeout) {}

  // Returns a note about missing facts, if the time ended first. The note is empty if nothing is
  // missing. Error: Unavailable, with the missing facts and the time that the router still waits.
  Result<std::string> look(const fleet::FleetSnapshot& fleet, const lists::InForce& list,
                           Instant now);

 private:
  const Duration timeout_;
  Mutex mutex_;
  // The time of the first look with a list.
  std::optional<Instant> began_ SL_GUARDED_BY(mutex_);
  // Absent until the check is done.
  std::optional<std::string> note_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::push
