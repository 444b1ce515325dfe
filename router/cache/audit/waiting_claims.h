// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "router/cache/audit/judge.h"

namespace sightline::audit {

// Limits on wrong claims that wait for a verdict. Claims beyond them are counted, but not judged.
struct ClaimLimits {
  // For all ranks together. A claim has its block keys with it.
  std::size_t bytes_max = 64U << 20U;
  // Two strikes are enough for a verdict, so one rank must not use the room of others.
  std::size_t per_engine_max = 16;
};

// A claim, with what the log says about it after the verdict.
struct WaitingClaim {
  Claim claim;
  std::string worker;
  std::string request_id;
  // Tokens that the rank was expected to reuse, and tokens that it reported.
  std::uint64_t predicted = 0;
  std::uint64_t actual = 0;

  // Returns the memory of the claim, with its block keys.
  [[nodiscard]] std::size_t bytes() const;
};

// Keeps claims until they can be judged, those of one rank in their order.
// Thread safety: any thread may call any method.
class WaitingClaims {
 public:
  // The clock outlives the object.
  WaitingClaims(const ClaimLimits& limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // Adds a claim. It is due at this moment, or when the claims before it are. Returns false if
  // there is no room for it.
  bool add(WaitingClaim claim, Instant due);
  // Waits until a claim is due, the moment has come, or close() is called. Returns the ranks whose
  // oldest claim is due.
  std::vector<CacheId> wait(Instant until);
  // Removes and returns the oldest claim of a rank, if it is due.
  std::optional<WaitingClaim> take(CacheId cache);
  // Makes the claim the rank's oldest one again, due at this moment.
  void put_back(WaitingClaim claim, Instant due);
  // Drops the claims of a rank.
  void forget(CacheId cache);
  // Ends all waits, the present and the later ones.
  void close();

 private:
  struct DueClaim {
    WaitingClaim claim;
    Instant due;
  };
  using Queue = std::deque<DueClaim>;
  // Returns when the next oldest claim is due. Instant::max() without claims.
  [[nodiscard]] Instant next_due() const SL_REQUIRES(mutex_);

  const ClaimLimits limits_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::unordered_map<CacheId, Queue> queues_ SL_GUARDED_BY(mutex_);  // without empty queues
  std::size_t bytes_ SL_GUARDED_BY(mutex_) = 0;
  bool closed_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::audit
