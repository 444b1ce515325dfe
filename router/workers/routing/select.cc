// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/routing/select.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace sightline::routing {
namespace {

using Indices = std::vector<std::size_t>;

// Keeps the indices whose key is least.
template <class Key>
void keep_least(Indices& indices, Key key) {
  auto least = key(indices.front());
  for (const std::size_t i : indices) least = std::min(least, key(i));
  std::erase_if(indices, [&](std::size_t i) { return key(i) > least; });
}

// The booked work of a candidate in blocks, weighted as in its cost.
double load_of(const Job& job, const Candidate& candidate,
               const contract::RoutingSettings& weights) {
  return weights.prefill_load_scale * candidate.active_prefill_tokens / job.block_size +
         weights.decode_load_scale * candidate.active_blocks;
}

// See Score::recompute_blocks.
void charge_recomputation(const Job& job, std::span<const Candidate> candidates,
                          const contract::RoutingSettings& weights, std::vector<Score>& scores) {
  const auto credit = [&](std::size_t i) { return scores[i].cost.overlap_credit_blocks; };
  const auto load = [&](std::size_t i) { return load_of(job, candidates[i], weights); };
  std::size_t home = 0;
  for (std::size_t i = 1; i < scores.size(); ++i) {
    // Credits are compared first. Equal credits are decided by the lower load.
    if (std::pair(credit(i), -load(i)) > std::pair(credit(home), -load(home))) home = i;
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double again = weights.prefill_load_scale * (credit(home) - credit(i));
    // If the home is not busier, the request can go there, and no charge is needed.
    scores[i].recompute_blocks =
        std::clamp(load(home) - load(i), 0.0, weights.recompute_weight * again);
  }
}

// See kSpreadWeight.
void charge_recent_work(std::span<const Candidate> candidates, std::vector<Score>& scores) {
  double least = candidates.front().recent_prefill_blocks;
  for (const Candidate& c : candidates) least = std::min(least, c.recent_prefill_blocks);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double recent = candidates[i].recent_prefill_blocks;
    const double ahead = recent - least - kSpreadFreeBlocks - kSpreadFreeRatio * recent;
    scores[i].spread_blocks = std::clamp(kSpreadWeight * ahead, 0.0, kSpreadBlocksMax);
  }
}

std::vector<Score> score_all(const Job& job, std::span<const Candidate> candidates,
                             const contract::RoutingSettings& weights) {
  std::vector<Score> scores;
  scores.reserve(candidates.size());
  for (const Candidate& c : candidates) scores.push_back({.cost = cost_of(job, c, weights)});
  charge_recomputation(job, candidates, weights, scores);
  charge_recent_work(candidates, scores);
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

// The candidates whose charged cost exceeds the least by at most the tolerance.
Indices tied_by_cost(const std::vector<Score>& scores, double tolerance) {
  Indices tied = all_of(scores.size());
  double least = scores.front().charged();
  for (const Score& score : scores) least = std::min(least, score.charged());
  std::erase_if(tied, [&](std::size_t i) { return scores[i].charged() > least + tolerance; });
  return tied;
}

// Whether the chosen candidate costs less than another one only because of the charge for recent
// work.
bool is_spread(const Decision& decision, double tolerance) {
  const double chosen = decision.scores[decision.chosen].without_spread();
  return std::any_of(decision.scores.begin(), decision.scores.end(), [&](const Score& other) {
    return other.without_spread() + tolerance < chosen;
  });
}

void break_ties(Indices tied, std::span<const Candidate> candidates, Decision& decision, Rng& rng) {
  decision.chosen = tied.front();
  decision.reason = Reason::LeastCost;
  if (tied.size() == 1) return;
  // The order of docs/routing.md: fewest requests, then KV use, then by chance. If one rule leaves
  // a tie, the next one decides.
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
  // The reason names the charge even if a tie was broken by another rule.
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
  // Also for policies that do not use the costs: /v1/explain shows them.
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
