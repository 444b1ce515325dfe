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

// Why the chosen candidate was taken.
enum class Reason : std::uint8_t {
  OnlyCandidate,
  LeastCost,  // no other within the tie tolerance
  Spread,     // the same once recent work is charged; without it another one is ahead
  FewestInFlight,
  LowestKvUse,
  Draw,    // equal in everything: seeded random
  InTurn,  // round-robin
};
std::string_view name_of(Reason reason);

// Work that is done leaves a trace: a candidate that lately computed more prompt blocks than the
// least busy one is charged kSpreadWeight of the difference, up to kSpreadBlocksMax. So a prefix
// that all requests share spreads over idle workers instead of gluing them to the first one that
// held it, while a long conversation's own prefix outweighs the charge. kSpreadFreeBlocks and
// kSpreadFreeRatio of the candidate's own recent work are free: so much differs by chance where
// work is even, and charging it would move repeats away from the worker that holds them.
inline constexpr double kSpreadWeight = 0.4;
inline constexpr double kSpreadFreeBlocks = 64.0;
inline constexpr double kSpreadFreeRatio = 0.1;
inline constexpr double kSpreadBlocksMax = 256.0;
// KV use is compared in steps of this size: the workers report it about once a second, and a
// difference smaller than a step would send all requests of that second to one worker.
inline constexpr double kKvUseStep = 0.1;

// A candidate's cost and what was added to it for choosing.
struct Score {
  Cost cost;
  // The cost is what this request waits for. What a candidate computes again although another one
  // (the home: it holds the most, and is the least busy of those) holds it delays the requests
  // behind it as well: recompute_weight times those blocks are charged, as far as the home has
  // more load booked. Without it one repeat that is computed elsewhere is load there, which drives
  // that worker's own repeats out in turn.
  double recompute_blocks = 0;
  double spread_blocks = 0;

  [[nodiscard]] double without_spread() const { return cost.total_blocks + recompute_blocks; }
  [[nodiscard]] double charged() const { return without_spread() + spread_blocks; }
};

struct Decision {
  std::size_t chosen = 0;  // index into the candidates
  Reason reason = Reason::OnlyCandidate;
  std::vector<Score> scores;  // one per candidate, same order
};

// Picks one of the candidates, of which there must be at least one, by settings.policy. turn is the
// number of decisions before this one, for round-robin. Pure, given rng.
struct Choice {
  const contract::RoutingSettings& settings;
  std::uint64_t turn = 0;
};
Decision select(const Job& job, std::span<const Candidate> candidates, const Choice& choice,
                Rng& rng);

}  // namespace sightline::routing
