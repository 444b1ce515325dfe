// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/worker_spec.h"

namespace sightline::lists {

// The most bytes of a body. A configuration file has the same limit.
inline constexpr std::size_t kPushBytesMax = 4 << 20;
// The most workers of a list.
inline constexpr std::size_t kPushedWorkersMax = 10'000;
// The most bytes of a revision: the longest value of a Kubernetes label.
inline constexpr std::size_t kRevisionBytesMax = 63;
// The first pushed list may have any generation up to kFirstGenerationMax. Each later one may
// exceed the present one by up to kGenerationStepMax. So no list can use up all generations.
// Pushers that count, or that use the time in nanoseconds, never come near either limit.
inline constexpr std::uint64_t kFirstGenerationMax = 1ULL << 62U;
inline constexpr std::uint64_t kGenerationStepMax = 1ULL << 56U;

// A pushed list of workers. It is always complete.
struct PushedWorkers {
  // Of the index. Lists of another revision are refused.
  std::string revision;
  // From 1 on. The pusher counts it up with each change. Of two lists the one with the higher
  // generation is newer.
  std::uint64_t generation = 1;
  std::vector<contract::WorkerSpec> workers;
  bool operator==(const PushedWorkers&) const = default;
};

// Reads the body of PUT /v1/workers: {"revision", "generation", "workers": [{fields of --worker}]}.
// The value of a field is a string, a whole number or true/false.
// api_key_file is refused. Otherwise a pusher could make the router read its files and send them to
// any host.
// Errors, blamed on the client: InvalidArgument with place and rule ("workers[3]: …"), TooLarge.
Result<PushedWorkers> parse_pushed_workers(std::string body);

// How two lists differ: the names of the workers, in the order of the lists.
struct Difference {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
  std::vector<std::string> kept;
};
// Compares by name. Workers with other fields are `changed`.
Difference difference(const std::vector<contract::WorkerSpec>& before,
                      const std::vector<contract::WorkerSpec>& after);

// What to do with a pushed list.
enum class ListVerdict : std::uint8_t {
  // Its generation is the next: put it in force.
  TakeOver,
  // The present list: do nothing.
  Same,
  // Not for this router.
  OtherRevision,
  // A lower generation than the present one.
  Older,
  // The present generation with other workers.
  Forked,
  // Beyond kFirstGenerationMax or kGenerationStepMax.
  TooFar,
};

// Decides what to do with a pushed list. `held` is the pushed list in force, null before the first
// one.
ListVerdict judge(std::string_view own_revision, const PushedWorkers* held,
                  const PushedWorkers& next);

}  // namespace sightline::lists
