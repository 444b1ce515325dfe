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

// Faults that a simulated engine injects into its events and answers.
namespace sightline::faults {

enum class FaultKind : std::uint8_t {
  // An event message is not sent, but a replay has it.
  Drop,
  // An event message is sent twice.
  Duplicate,
  // An event message is sent after the next one.
  Reorder,
  // An event message, and all after it, are sent later.
  Delay,
  // The next replay loses messages in its middle, and its end marker.
  CutReplay,
  // The payload of an event message cannot be decoded, live and replayed.
  GarbageEvents,
  // From now on, until the engine restarts, events report another block size.
  WrongBlockSize,
  // The engine's process ends and starts again.
  Restart,
  // The cache of an idle engine is empty, and the engine never reports it.
  Forget,
  // The connection is reset in the middle of an answer.
  DieMidstream,
  // An answer pauses.
  Stall,
  // An answer is a 500.
  Status500,
  // An answer is not HTTP.
  GarbageHttp,
  // An answer to a probe comes later.
  SlowProbe,
};
inline constexpr std::size_t kFaultKinds = 14;

// "drop" and so on. Both kinds of garbage have the name "garbage".
std::string_view name_of(FaultKind kind);

// The limits of the fields.
inline constexpr std::chrono::milliseconds kFaultTimeMax{600'000};
inline constexpr std::uint64_t kFaultCountMax = 1'000'000'000;
inline constexpr std::uint32_t kFaultEventsMax = 1'000'000;
inline constexpr std::size_t kFaultRequestBytesMax = 128;

// One fault, as it was ordered.
struct Fault {
  FaultKind kind = FaultKind::Drop;
  // The probability: per event message for faults of events, per other request for a slow probe,
  // per chat or completion request for all others. If it is absent, a restart happens once and
  // immediately, and every other fault always happens.
  std::optional<double> probability;
  // Absent: all engines.
  std::optional<std::uint32_t> engine;
  // The fault ends after this number of strikes. Absent: it never ends.
  std::optional<std::uint64_t> count;
  // The time of a delay, slow probe, restart or stall. A stall with 0 lasts until the client
  // leaves.
  std::chrono::milliseconds duration{0};
  // The events of an answer before it dies or stalls.
  std::uint32_t after_events = 0;
  // For Drop: a replay does not have the message either.
  bool lost = false;
  // Only requests whose x-request-id begins with this text. Empty: all requests.
  std::string request;
};

// The fields of a fault: name and value.
using FaultFields = std::vector<std::pair<std::string, std::string>>;

// Reads a fault, for example "kind=drop,p=0.05,engine=1". The fields are kind, p, engine, count,
// ms, after, lost, request and target. Errors: InvalidArgument with the field and its valid values.
Result<Fault> parse_fault(std::string_view text);
// Reads the same fields from the members of an object.
Result<Fault> read_fault(const json::Value& object);
// Returns the fields as a JSON object.
std::string to_json(const Fault& fault);

}  // namespace sightline::faults
