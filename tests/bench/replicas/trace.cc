// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/bench/replicas/trace.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/json.h"
#include "common/base/rng.h"

namespace sightline::quality {
namespace {

constexpr std::int64_t kTokensMax = 1 << 24;

// The factor is odd, so different contents have different keys.
keys::BlockKey key_of(std::uint64_t content) {
  return {(content + 1) * 0x9e37'79b9'7f4a'7c15U >> 3U};
}

std::optional<std::int64_t> number(const json::Value& object, std::string_view name,
                                   std::int64_t most) {
  const auto member = object.find(name);
  const auto value = member ? member->integer() : std::nullopt;
  if (!value || *value < 0 || *value > most) return std::nullopt;
  return value;
}

Error not_readable(std::size_t line, std::string_view what) {
  return {ErrorCode::InvalidArgument,
          Blame::Client,
          false,
          "line " + std::to_string(line) + " of the trace: " + std::string(what),
          "",
          ""};
}

Result<TracedRequest> parse_line(std::string_view text, std::size_t line) {
  const json::Document document = SL_TRY(json::Document::parse(std::string(text)));
  const json::Value root = document.root();
  const auto at = number(root, "timestamp", INT64_C(1) << 40);
  const auto input = number(root, "input_length", kTokensMax);
  const auto output = number(root, "output_length", kTokensMax);
  const auto ids = root.find("hash_ids");
  if (!at || !input || !output || !ids) {
    return not_readable(line, "timestamp, input_length, output_length or hash_ids are missing");
  }
  TracedRequest request{
      .at = std::chrono::milliseconds(*at),
      .prompt_tokens = static_cast<std::uint32_t>(std::max<std::int64_t>(*input, 1)),
      .output_tokens = static_cast<std::uint32_t>(std::max<std::int64_t>(*output, 1)),
      .whole_blocks = {}};
  for (const json::Value id : *ids) {
    if (request.whole_blocks.size() == request.prompt_tokens / kTraceBlockTokens) break;
    const auto content = id.integer();
    if (!content || *content < 0) return not_readable(line, "a hash id is no number");
    request.whole_blocks.push_back(key_of(static_cast<std::uint64_t>(*content)));
  }
  return request;
}

void sort_by_time(Trace& trace) {
  std::stable_sort(trace.begin(), trace.end(),
                   [](const TracedRequest& a, const TracedRequest& b) { return a.at < b.at; });
}

}  // namespace

Result<Trace> parse_trace(std::string_view lines) {
  Trace trace;
  for (std::size_t line = 1; !lines.empty(); ++line) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) trace.push_back(SL_TRY(parse_line(lines.substr(0, end), line)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  sort_by_time(trace);
  return trace;
}

Trace spread_over(Trace trace, Duration step, std::uint64_t seed) {
  Rng rng(seed);
  for (TracedRequest& request : trace) {
    request.at +=
        Duration(static_cast<Duration::rep>(rng.unit() * static_cast<double>(step.count())));
  }
  sort_by_time(trace);
  return trace;
}

Trace conversations(const Conversations& wanted, std::uint64_t seed) {
  Rng rng(seed);
  const auto some = [&rng](Duration most) {
    return Duration(static_cast<Duration::rep>(rng.unit() * static_cast<double>(most.count())));
  };
  Trace trace;
  std::uint64_t next_content = wanted.system_blocks;
  for (std::uint32_t i = 0; i < wanted.conversations; ++i) {
    TracedRequest request{.at = some(wanted.duration / 2),
                          .prompt_tokens = 0,
                          .output_tokens = wanted.output_tokens,
                          .whole_blocks = {}};
    for (std::uint64_t block = 0; block < wanted.system_blocks; ++block) {
      request.whole_blocks.push_back(key_of(block));
    }
    for (std::uint32_t turn = 0; turn < wanted.turns; ++turn) {
      for (std::uint32_t block = 0; block < wanted.turn_blocks; ++block) {
        request.whole_blocks.push_back(key_of(next_content++));
      }
      const auto whole = static_cast<std::uint32_t>(request.whole_blocks.size());
      request.prompt_tokens = whole * kTraceBlockTokens + 1 + rng.below(kTraceBlockTokens - 1);
      trace.push_back(request);
      request.at += some(wanted.duration / wanted.turns);
    }
  }
  sort_by_time(trace);
  return trace;
}

}  // namespace sightline::quality
