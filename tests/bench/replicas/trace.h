// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/cache/keys/block_key.h"

namespace sightline::quality {

// Traces name their prompts' content in blocks of so many tokens.
inline constexpr std::uint32_t kTraceBlockTokens = 512;

struct TracedRequest {
  Duration at{};  // after the trace's begin
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;  // at least 1
  std::vector<keys::BlockKey>
      whole_blocks;  // of the prompt; a last block that is not full is left out
};
using Trace = std::vector<TracedRequest>;  // in the order of `at`

// Reads one JSON object by line, as Mooncake publishes them: {timestamp (ms), input_length,
// output_length, hash_ids}. Errors: InvalidArgument, naming the line.
Result<Trace> parse_trace(std::string_view lines);

// Requests whose times were rounded down to the same step are spread evenly by chance over it, so
// that they do not come at one instant. Seeded.
Trace spread_over(Trace trace, Duration step, std::uint64_t seed);

// Conversations that grow turn by turn behind a system prompt which all share. Seeded.
struct Conversations {
  std::uint32_t conversations = 200;
  std::uint32_t turns = 5;
  std::uint32_t system_blocks = 4;
  std::uint32_t turn_blocks = 4;  // by which each turn is longer than the one before
  std::uint32_t output_tokens = 100;
  Duration duration = std::chrono::minutes(5);
};
Trace conversations(const Conversations& wanted, std::uint64_t seed);

}  // namespace sightline::quality
