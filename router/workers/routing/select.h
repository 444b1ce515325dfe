// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/rng.h"
#include "common/contract/serve_settings.h"

#include "router/workers/routing/candidate.h"
#include "router/workers/routing/cost.h"

namespace sightline::routing {

// Why the chosen candidate was chosen. docs/routing.md explains them.
enum class Reason : std::uint8_t {
  OnlyCandidate,
  // No other candidate is within the tie tolerance.
  LeastCost,
  // The same with the charge for recent work. Without it, another candidate costs less.
  Spread,
  FewestInFlight,
  LowestKvUse,
  Draw,    // equal in everything, chosen by the seeded generator
  InTurn,  // the policy is round-robin
};
// The reason as responses, logs and metrics name it, for example "least_cost".
std::string_view name_of(Reason reason);

// The charge for recent work. A candidate that lately computed more prompt blocks than the least
// busy one pays kSpreadWeight of the difference, at most kSpreadBlocksMax. So a prefix that all
// requests share spreads over idle workers. Without the charge, the first worker that held it would
// get all requests. The prefix of a long conversation outweighs the charge.
// kSpreadFreeBlocks, and kSpreadFreeRatio of the candidate's own recent work, are free. Even work
// differs this much by chance. A charge for it would move repeats away from the worker that holds
// them.
inline constexpr double kSpreadWeight = 0.4;
inline constexpr double kSpreadFreeBlocks = 64.0;
inline constexpr double kSpreadFreeRatio = 0.1;
inline constexpr double kSpreadBlocksMax = 256.0;
// KV use is compared in steps of this size. The workers report it about once a second. A smaller
// step would send all requests of that second to one worker.
inline constexpr double kKvUseStep = 0.1;

// A candidate's cost, and the charges that are added for the choice.
struct Score {
  Cost cost;
  // The charge for computing blocks again. The cost is only what this request waits for. A
  // candidate may compute blocks that another one holds, and then the requests behind this one wait
  // too. The home is the candidate that holds the most blocks, and of several the least busy one.
  // The charge is recompute_weight times those blocks, and at most the home's additional booked
  // load. Without it, a repeat computed elsewhere is load there, which evicts that worker's own
  // repeats in turn.
  double recompute_blocks = 0;
  double spread_blocks = 0;

  // What the candidate costs without the charge for recent work.
  [[nodiscard]] double without_spread() const { return cost.total_blocks + recompute_blocks; }
  // What the choice compares.
  [[nodiscard]] double charged() const { return without_spread() + spread_blocks; }
};

// The choice, with everything that explains it.
struct Decision {
  std::size_t chosen = 0;  // index into the candidates
  Reason reason = Reason::OnlyCandidate;
  std::vector<Score> scores;  // one per candidate, same order
};

// Chooses one of the candidates by settings.policy. There must be at least one. `turn` is the
// number of decisions before this one, for round-robin. Pure, given `rng`.
struct Choice {
  const contract::RoutingSettings& settings;
  std::uint64_t turn = 0;
};
Decision select(const Job& job, std::span<const Candidate> candidates, const Choice& choice,
                Rng& rng);

}  // namespace sightline::routing
