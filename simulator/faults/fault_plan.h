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

// The most active faults of an engine.
inline constexpr std::size_t kActiveFaultsMax = 1000;
// The most strikes that are listed. A new one replaces the oldest.
inline constexpr std::size_t kStrikesKept = 100'000;

// The target of a strike.
struct FaultTarget {
  // x-request-id of the request, or empty.
  std::string request;
  // Sequence number of the event message.
  std::optional<std::uint64_t> sequence;
};

// The faults of one engine, and the time of each strike. It lives longer than a restart of the
// engine. It is deterministic, except for the times.
//
// Not thread-safe: use it on the engine's thread.
class FaultPlan {
 public:
  // The clock must live longer.
  FaultPlan(std::uint64_t seed, const Clock& clock) : clock_(clock), rng_(seed) {}

  // Adds a fault. Errors: TooLarge above kActiveFaultsMax.
  Result<Done> add(const Fault& fault);
  // Ends all faults. Past strikes stay in the list.
  void end_all() { active_.clear(); }
  [[nodiscard]] bool empty() const { return active_.empty(); }

  // Draws a number for each fault of this kind. Records the first fault that strikes, and returns
  // it.
  std::optional<Fault> draw(FaultKind kind, const FaultTarget& occasion);
  // Records a strike without a draw.
  void note(FaultKind kind, const FaultTarget& occasion);

  // The number of strikes of all kinds with this name.
  [[nodiscard]] std::uint64_t struck(std::string_view name) const;
  // Returns {"faults":[{"kind",…,"struck"}],"strikes_total",
  // "strikes":[{"kind","time_s","request","sequence"}]}. The list of strikes begins with number
  // `since`.
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
  // The latest strikes.
  std::deque<Strike> strikes_;
};

}  // namespace sightline::faults
