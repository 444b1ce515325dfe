// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "simulator/faults/fault.h"

namespace sightline::faults {

inline constexpr std::size_t kActiveFaultsMax = 1000;
inline constexpr std::size_t kStrikesKept = 100'000;  // the oldest are forgotten first

// What a fault struck.
struct FaultTarget {
  std::string request;                    // x-request-id of the request; empty: none
  std::optional<std::uint64_t> sequence;  // of the event message
};

// The faults of one engine: which are on, when each struck. Outlives restarts of the engine.
// Deterministic but for the times it notes. Thread safety: none; on the engine's thread.
class FaultPlan {
 public:
  // The clock outlives it.
  FaultPlan(std::uint64_t seed, const Clock& clock) : clock_(clock), rng_(seed) {}

  // Errors: TooLarge.
  Result<Done> add(const Fault& fault);
  // Ends all faults; what struck stays listed.
  void end_all() { active_.clear(); }
  [[nodiscard]] bool empty() const { return active_.empty(); }

  // Lets each fault of this kind try its chance; the first that strikes is noted and returned.
  std::optional<Fault> draw(FaultKind kind, const FaultTarget& occasion);
  // Notes a strike that needed no chance.
  void note(FaultKind kind, const FaultTarget& occasion);

  // Strikes of all kinds of that name.
  [[nodiscard]] std::uint64_t struck(std::string_view name) const;
  // {"faults":[{"kind",…,"struck"}],"strikes_total",
  //  "strikes":[{"kind","time_s","request","sequence"}]}, the strikes from number `since` on.
  [[nodiscard]] std::string to_json(std::uint64_t since) const;

 private:
  struct Active {
    Fault fault;
    std::uint64_t struck = 0;
    [[nodiscard]] bool ended() const { return fault.count && struck >= *fault.count; }
  };
  struct Strike {
    FaultKind kind = FaultKind::Drop;
    double time_s = 0;
    FaultTarget occasion;
  };

  const Clock& clock_;
  Rng rng_;
  std::vector<Active> active_;
  std::array<std::uint64_t, kFaultKinds> totals_{};
  std::uint64_t strikes_total_ = 0;
  std::deque<Strike> strikes_;  // the last of them
};

}  // namespace sightline::faults
