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

// Wrong claims that wait to be judged; more are counted but not judged.
struct ClaimLimits {
  std::size_t bytes_max = 64U << 20U;  // of all ranks together: a claim holds its block keys
  // Two strikes are enough: one rank must not take the room of others.
  std::size_t per_engine_max = 16;
};

// A claim with what is said of it once it is judged.
struct WaitingClaim {
  Claim claim;
  std::string worker;
  std::string request_id;
  std::uint64_t predicted = 0;  // tokens
  std::uint64_t actual = 0;     // tokens

  [[nodiscard]] std::size_t bytes() const;
};

// Claims until they can be judged, those of a rank in their order.
// Thread safety: all methods from any thread.
class WaitingClaims {
 public:
  WaitingClaims(const ClaimLimits& limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // It is due at this moment, or when those before it are. False: there is no room for it.
  bool add(WaitingClaim claim, Instant due);
  // Waits until a claim is due, this moment has come, or close(). Ranks whose oldest claim is
  // due.
  std::vector<CacheId> wait(Instant until);
  // The oldest claim of a rank, if it is due.
  std::optional<WaitingClaim> take(CacheId cache);
  // It is the rank's oldest one again, and due at this moment.
  void put_back(WaitingClaim claim, Instant due);
  void forget(CacheId cache);
  // Nobody waits from now on.
  void close();

 private:
  struct Waiting {
    WaitingClaim claim;
    Instant due;
  };
  using Queue = std::deque<Waiting>;
  [[nodiscard]] Instant next_due() const SL_REQUIRES(mutex_);

  const ClaimLimits limits_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::unordered_map<CacheId, Queue> queues_ SL_GUARDED_BY(mutex_);  // none is empty
  std::size_t bytes_ SL_GUARDED_BY(mutex_) = 0;
  bool closed_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::audit
