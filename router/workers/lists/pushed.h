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

inline constexpr std::size_t kPushBytesMax = 4 << 20;  // of a body, as of a configuration file
inline constexpr std::size_t kPushedWorkersMax = 10'000;
inline constexpr std::size_t kRevisionBytesMax = 63;  // of a Kubernetes label's value
// The first list that is pushed may have any generation up to the first of these, and each later
// one as much as the second more than the one held: so no list is the last that can be pushed.
// Those who count, and those who take the time in nanoseconds, never come near either.
inline constexpr std::uint64_t kFirstGenerationMax = 1ULL << 62U;
inline constexpr std::uint64_t kGenerationStepMax = 1ULL << 56U;

// A list of workers that somebody pushes, all of them at once.
struct PushedWorkers {
  std::string revision;  // of the index; lists of another one are not for this router
  // From 1 on, counted up by who pushes, with each change; of two the higher one is the later.
  std::uint64_t generation = 1;
  std::vector<contract::WorkerSpec> workers;
  bool operator==(const PushedWorkers&) const = default;
};

// Reads the body of PUT /v1/workers: {"revision", "generation", "workers": [{fields of --worker}]}.
// A field's value is a string, a whole number or true/false. api_key_file is refused: a pusher must
// not have the router read files and send them to hosts of its choice. Errors, blamed on the
// client: InvalidArgument that names place and rule ("workers[3]: …"), TooLarge.
Result<PushedWorkers> parse_pushed_workers(std::string body);

// What one list has that another had not, by the workers' names, in the order of the lists.
struct Difference {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
  std::vector<std::string> kept;
};
Difference difference(const std::vector<contract::WorkerSpec>& before,
                      const std::vector<contract::WorkerSpec>& after);

enum class Verdict : std::uint8_t {
  TakeOver,
  Same,           // the list that is held: nothing to do
  OtherRevision,  // not for this router
  Older,          // a lower generation than the one held
  Forked,         // the generation that is held, with other workers
  TooFar,         // a generation beyond kFirstGenerationMax or kGenerationStepMax
};

// What is to be done with a pushed list. held: the pushed list in force, null before the first.
Verdict judge(std::string_view own_revision, const PushedWorkers* held, const PushedWorkers& next);

}  // namespace sightline::lists
