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

// Traces name the content of prompts in blocks of so many tokens.
inline constexpr std::uint32_t kTraceBlockTokens = 512;

// One request of a trace.
struct TracedRequest {
  Duration at{};  // after the trace's beginning
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;  // at least 1
  // Of the prompt, without a partial last block.
  std::vector<keys::BlockKey> whole_blocks;
};
using Trace = std::vector<TracedRequest>;  // in the order of `at`

// Reads one JSON object per line, in the form of Mooncake's traces: {timestamp (ms), input_length,
// output_length, hash_ids}. Error: InvalidArgument, which names the line.
Result<Trace> parse_trace(std::string_view lines);

// Spreads requests whose times were rounded down to the same step at random over this step.
// Otherwise they would arrive at the same instant. The seed determines the result.
Trace spread_over(Trace trace, Duration step, std::uint64_t seed);

// Makes conversations that grow turn by turn. All share a system prompt. The seed determines the
// result.
struct Conversations {
  std::uint32_t conversations = 200;
  std::uint32_t turns = 5;
  std::uint32_t system_blocks = 4;
  std::uint32_t turn_blocks = 4;  // of each turn
  std::uint32_t output_tokens = 100;
  Duration duration = std::chrono::minutes(5);
};
Trace conversations(const Conversations& wanted, std::uint64_t seed);

}  // namespace sightline::quality
