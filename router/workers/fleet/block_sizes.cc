// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/block_sizes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace sightline::fleet {

Ballot ballot_of(const Worker& worker, const Observations& seen) {
  return {.is_sound = seen.is_alive && conflict_of(worker, seen).empty(),
          .has_engines = !worker.engines.empty(),
          .is_guessed = worker.is_block_size_guessed,
          .block_size = worker.block_size,
          .block_size_configured = worker.block_size_configured};
}

void guess_block_sizes(const std::vector<Worker*>& workers) {
  std::map<std::uint32_t, std::uint32_t> known;  // configured or told elsewhere -> by events
  for (const Worker* worker : workers) {
    if (worker->is_block_size_guessed || worker->block_size_configured == 0) continue;
    known.emplace(worker->block_size_configured, worker->block_size);
  }
  for (Worker* worker : workers) {
    const auto alike = known.find(worker->block_size_configured);
    if (worker->is_block_size_guessed && alike != known.end()) worker->block_size = alike->second;
  }
}

std::uint32_t common_block_size(const std::vector<Worker*>& workers) {
  std::vector<std::pair<std::uint32_t, std::size_t>> votes;  // in the order of the workers
  for (const Worker* worker : workers) {
    if (worker->engines.empty() || worker->block_size == 0) continue;
    auto vote = std::find_if(votes.begin(), votes.end(),
                             [&](const auto& v) { return v.first == worker->block_size; });
    if (vote == votes.end()) vote = votes.insert(votes.end(), {worker->block_size, 0});
    ++vote->second;
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? 0 : most->first;
}

}  // namespace sightline::fleet
