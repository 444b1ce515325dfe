// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/rules.h"

#include <algorithm>

namespace sightline::retry {

Next next_after(Ending ending, const Past& past, Repeatable repeatable) {
  if (past.attempts >= kAttemptsMax) return Next::GiveUp;
  const bool was_lost_before = past.losses + 1 >= kLossesMax;
  switch (ending) {
    case Ending::Unsent:
      return Next::AnotherWorker;
    case Ending::KeptClosed:
      return repeatable == Repeatable::Never || was_lost_before ? Next::GiveUp : Next::SameWorker;
    case Ending::Lost:
      return repeatable != Repeatable::AnotherToo || was_lost_before ? Next::GiveUp
                                                                     : Next::AnotherWorker;
    case Ending::Declined:
      return repeatable == Repeatable::AnotherToo ? Next::AnotherWorker : Next::GiveUp;
    case Ending::Local:
    case Ending::Silent:
    case Ending::Final:
      return Next::GiveUp;
  }
  return Next::GiveUp;
}

bool may_retry_beside(std::size_t retries, std::size_t live) {
  return retries < std::max(kRetriesMin, live * kRetriesPercentMax / 100);
}

}  // namespace sightline::retry
