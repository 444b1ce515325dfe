// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <vector>

#include "router/workers/fleet/worker.h"

namespace sightline::fleet {

// All of a worker that the states of the others depend on.
struct Ballot {
  bool is_sound = false;  // alive, and nothing it says contradicts itself or the operator
  bool has_engines = false;
  bool is_guessed = false;
  std::uint32_t block_size = 0;
  std::uint32_t block_size_configured = 0;

  bool operator==(const Ballot&) const = default;
};

Ballot ballot_of(const Worker& worker, const Observations& seen);

// Workers without events that are told the block size of another, whose events tell theirs, are
// taken to have what that one has: engines are started alike.
void guess_block_sizes(const std::vector<Worker*>& workers);

// The block size that most of these workers with readable events have, the first one's where
// votes are equal; 0 if none is known. Blocks of different sizes cannot be compared.
std::uint32_t common_block_size(const std::vector<Worker*>& workers);

}  // namespace sightline::fleet
