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

// The check `learnt` of /readyz. Done once all that can be learnt of the workers is learnt, or
// `timeout` after the first look at a list; and ever after: workers that come later do not make a
// router unready. To be looked at from the start on.
// Thread safety: look() from any thread.
class LearntCheck {
 public:
  explicit LearntCheck(Duration timeout) : timeout_(timeout) {}

  // A note on what is not learnt, if the time was over before; empty: all is. Error: Unavailable,
  // what is still to come and how long it is waited for.
  Result<std::string> look(const fleet::FleetSnapshot& fleet, const lists::InForce& list,
                           Instant now);

 private:
  const Duration timeout_;
  Mutex mutex_;
  std::optional<Instant> began_ SL_GUARDED_BY(mutex_);     // when there first was a list
  std::optional<std::string> note_ SL_GUARDED_BY(mutex_);  // nothing: not yet
};

}  // namespace sightline::push
