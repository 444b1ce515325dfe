// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

// Faults that a simulated engine injects on purpose into its events and answers.
namespace sightline::faults {

enum class FaultKind : std::uint8_t {
  Drop,            // an event message is not sent, but is kept for replay
  Duplicate,       // an event message is sent twice
  Reorder,         // an event message is sent after the next one
  Delay,           // an event message, and those after it, are sent later
  CutReplay,       // the next replay loses messages in its middle, and its end marker
  GarbageEvents,   // an event message's payload is undecodable, live and replayed
  WrongBlockSize,  // events tell another block size from now on, until the engine restarts
  Restart,         // the engine's process ends and starts again
  Forget,          // an idle engine's cache is empty, and it never says so
  DieMidstream,    // the connection is reset in the middle of an answer
  Stall,           // an answer falls silent
  Status500,       // an answer is a 500
  GarbageHttp,     // an answer is not HTTP
  SlowProbe,       // an answer to other paths than those of requests comes later
};
inline constexpr std::size_t kFaultKinds = 14;

// "drop", …; both kinds of garbage are "garbage".
std::string_view name_of(FaultKind kind);

inline constexpr std::chrono::milliseconds kFaultTimeMax{600'000};
inline constexpr std::uint64_t kFaultCountMax = 1'000'000'000;
inline constexpr std::uint32_t kFaultEventsMax = 1'000'000;
inline constexpr std::size_t kFaultRequestBytesMax = 128;

// One fault as it was ordered.
struct Fault {
  FaultKind kind = FaultKind::Drop;
  // Chance to strike, per event message for faults of events, per chat or completion request for
  // the others, per other request for a slow probe. Nothing: a restart that happens once, at once;
  // else always.
  std::optional<double> probability;
  std::optional<std::uint32_t> engine;  // nothing: all engines
  std::optional<std::uint64_t> count;   // ends after so many strikes; nothing: never
  // ms: of a delay, slow probe, restart, stall (0: until the client left).
  std::chrono::milliseconds duration{0};
  std::uint32_t after_events = 0;  // of an answer that dies or stalls
  bool lost = false;               // drop: not kept for replay either
  std::string request;  // strikes requests only whose x-request-id begins so; empty: whatever
};

using FaultFields = std::vector<std::pair<std::string, std::string>>;

// "kind=drop,p=0.05,engine=1": fields kind, p, engine, count, ms, after, lost, request,
// target. Errors: InvalidArgument naming the field and what it may be.
Result<Fault> parse_fault(std::string_view text);
// The same fields as members of an object.
Result<Fault> read_fault(const json::Value& object);
// The fields again, as a JSON object.
std::string to_json(const Fault& fault);

}  // namespace sightline::faults
