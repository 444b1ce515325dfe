// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/routing/select.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace sightline::routing {
namespace {

using Indices = std::vector<std::size_t>;

// Keeps the indices with the least key.
template <class Key>
void keep_least(Indices& indices, Key key) {
  auto least = key(indices.front());
  for (const std::size_t i : indices) least = std::min(least, key(i));
  std::erase_if(indices, [&](std::size_t i) { return key(i) > least; });
}

std::vector<Score> score_all(const Job& job, std::span<const Candidate> candidates,
                             const contract::RoutingSettings& weights) {
  double least_recent = candidates.front().recent_prefill_blocks;
  for (const Candidate& c : candidates) {
    least_recent = std::min(least_recent, c.recent_prefill_blocks);
  }
  std::vector<Score> scores;
  scores.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    const double spread = kSpreadWeight * (c.recent_prefill_blocks - least_recent);
    scores.push_back({cost_of(job, c, weights), std::min(spread, kSpreadBlocksMax)});
  }
  return scores;
}

Indices all_of(std::size_t count) {
  Indices indices(count);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

void finish_with_draw(Indices& tied, Decision& decision, Rng& rng) {
  decision.reason = Reason::Draw;
  decision.chosen = tied[rng.below(static_cast<std::uint32_t>(tied.size()))];
}

double tolerance_blocks(const Job& job, const contract::RoutingSettings& settings) {
  return settings.tie_tolerance_blocks +
         settings.tie_tolerance_ratio * static_cast<double>(touched_blocks(job));
}

// Indices of the candidates whose charged cost is within the tolerance of the least.
Indices tied_by_cost(const std::vector<Score>& scores, double tolerance) {
  const auto charged = [&](std::size_t i) {
    return scores[i].cost.total_blocks + scores[i].spread_blocks;
  };
  Indices tied = all_of(scores.size());
  double least = charged(0);
  for (const std::size_t i : tied) least = std::min(least, charged(i));
  std::erase_if(tied, [&](std::size_t i) { return charged(i) > least + tolerance; });
  return tied;
}

// True if the chosen one is ahead only because recent work is charged.
bool is_spread(const Decision& decision, double tolerance) {
  const double chosen = decision.scores[decision.chosen].cost.total_blocks;
  return std::any_of(decision.scores.begin(), decision.scores.end(), [&](const Score& other) {
    return other.cost.total_blocks + tolerance < chosen;
  });
}

void break_ties(Indices tied, std::span<const Candidate> candidates, Decision& decision, Rng& rng) {
  decision.chosen = tied.front();
  decision.reason = Reason::LeastCost;
  if (tied.size() == 1) return;
  keep_least(tied, [&](std::size_t i) { return candidates[i].in_flight; });
  decision.chosen = tied.front();
  decision.reason = Reason::FewestInFlight;
  if (tied.size() == 1) return;
  keep_least(tied, [&](std::size_t i) { return std::floor(candidates[i].kv_usage / kKvUseStep); });
  decision.chosen = tied.front();
  decision.reason = Reason::LowestKvUse;
  if (tied.size() == 1) return;
  finish_with_draw(tied, decision, rng);
}

void pick_by_cost(double tolerance, std::span<const Candidate> candidates, Decision& decision,
                  Rng& rng) {
  break_ties(tied_by_cost(decision.scores, tolerance), candidates, decision, rng);
  if (is_spread(decision, tolerance)) decision.reason = Reason::Spread;
}

void pick_by_load(std::span<const Candidate> candidates, Decision& decision, Rng& rng) {
  Indices tied = all_of(candidates.size());
  keep_least(tied, [&](std::size_t i) { return candidates[i].in_flight; });
  decision.chosen = tied.front();
  decision.reason = Reason::FewestInFlight;
  if (tied.size() == 1) return;
  keep_least(tied, [&](std::size_t i) { return candidates[i].active_prefill_tokens; });
  finish_with_draw(tied, decision, rng);
}

}  // namespace

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::OnlyCandidate:
      return "only_candidate";
    case Reason::LeastCost:
      return "least_cost";
    case Reason::Spread:
      return "spread";
    case Reason::FewestInFlight:
      return "fewest_in_flight";
    case Reason::LowestKvUse:
      return "lowest_kv_use";
    case Reason::Draw:
      return "draw";
    case Reason::InTurn:
      return "in_turn";
  }
  return "least_cost";
}

Decision select(const Job& job, std::span<const Candidate> candidates, const Choice& choice,
                Rng& rng) {
  SL_CHECK(!candidates.empty());
  const contract::RoutingSettings& settings = choice.settings;
  Decision decision;
  decision.scores = score_all(job, candidates, settings);
  if (candidates.size() == 1) return decision;
  switch (settings.policy) {
    case contract::Policy::Kv:
      pick_by_cost(tolerance_blocks(job, settings), candidates, decision, rng);
      break;
    case contract::Policy::LeastLoaded:
      pick_by_load(candidates, decision, rng);
      break;
    case contract::Policy::RoundRobin:
      decision.chosen = choice.turn % candidates.size();
      decision.reason = Reason::InTurn;
      break;
    case contract::Policy::Random: {
      Indices all = all_of(candidates.size());
      finish_with_draw(all, decision, rng);
      break;
    }
  }
  return decision;
}

}  // namespace sightline::routing
