// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/rules.h"

#include <algorithm>

namespace sightline::retry {

Next next_after(AttemptOutcome ending, const Past& past, Repeatable repeatable) {
  if (past.attempts >= kAttemptsMax) return Next::GiveUp;
  const bool was_lost_before = past.losses + 1 >= kLossesMax;
  switch (ending) {
    // No worker has received the request. Any other one may get it, without a risk.
    case AttemptOutcome::Unsent:
      return Next::AnotherWorker;
    case AttemptOutcome::KeptClosed:
      return repeatable == Repeatable::Never || was_lost_before ? Next::GiveUp : Next::SameWorker;
    // Another worker may die as well. This happens at most once.
    case AttemptOutcome::Lost:
      return repeatable != Repeatable::AnotherToo || was_lost_before ? Next::GiveUp
                                                                     : Next::AnotherWorker;
    case AttemptOutcome::Declined:
      return repeatable == Repeatable::AnotherToo ? Next::AnotherWorker : Next::GiveUp;
    // The worker may still work on the request, or the client has a part of an answer.
    case AttemptOutcome::Local:
    case AttemptOutcome::Silent:
    case AttemptOutcome::Final:
      return Next::GiveUp;
  }
  return Next::GiveUp;
}

bool may_retry_beside(std::size_t retries, std::size_t live) {
  return retries < std::max(kRetriesMin, live * kRetriesPercentMax / 100);
}

}  // namespace sightline::retry
