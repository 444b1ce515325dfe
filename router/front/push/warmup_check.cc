// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/warmup_check.h"

#include <chrono>
#include <utility>

#include "router/workers/fleet/learnt.h"

namespace sightline::push {
namespace {

std::string seconds_of(Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  // The decimal place is left out if it is 0.
  const auto tenths = std::to_string(ms % 1000 / 100);
  return std::to_string(ms / 1000) + (tenths == "0" ? "" : "." + tenths) + " s";
}

Error not_yet(std::string message) {
  return {ErrorCode::Unavailable, Blame::Worker, true, std::move(message), {}, {}};
}

}  // namespace

Result<std::string> WarmupCheck::look(const fleet::FleetSnapshot& fleet, const lists::InForce& list,
                                      Instant now) {
  const MutexLock lock(mutex_);
  // The result stays, even if new workers come.
  if (note_) return *note_;
  if (list.source == lists::ListSource::None) return not_yet("there is no worker list yet");
  // The time begins with the first list. Without a list the router has nothing to wait for.
  if (!began_) began_ = now;
  const std::string missing = fleet::why_not_learnt(fleet, list.workers);
  if (missing.empty()) {
    note_.emplace();
    return *note_;
  }
  const Duration left = *began_ + timeout_ - now;
  if (left > Duration::zero()) {
    return not_yet(missing + ". The router waits at most " + seconds_of(left) + " more");
  }
  note_ = "incomplete after " + seconds_of(timeout_) + " (--ready-timeout): " + missing;
  return *note_;
}

}  // namespace sightline::push
