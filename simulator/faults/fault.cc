// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace sightline::faults {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames{
    "drop",    "duplicate", "reorder",       "delay", "cut-replay", "garbage", "wrong-block-size",
    "restart", "forget",    "die-midstream", "stall", "status500",  "garbage", "slow-probe"};
constexpr std::chrono::milliseconds kDelayDefault{100};
constexpr std::chrono::milliseconds kSlowProbeDefault{3000};
constexpr std::uint32_t kEngineMax = 1'000'000;

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, "fault: " + std::move(message));
}

Error out_of_range(const std::string& name, const std::string& range) {
  return invalid(name + " must be " + range);
}

Result<std::uint64_t> read_count(const std::string& name, const std::string& text,
                                 std::uint64_t max) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc() || read.ptr != end || value > max) {
    return out_of_range(name, "a whole number up to " + std::to_string(max));
  }
  return value;
}

Result<double> read_chance(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  const bool sound = !text.empty() && read.ec == std::errc() && read.ptr == end;
  // This form of the comparison also refuses NaN.
  if (!sound || !(value >= 0 && value <= 1)) return out_of_range("p", "within 0 … 1");
  return value;
}

Result<bool> read_flag(const std::string& name, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return out_of_range(name, "true or false");
}

Result<FaultKind> read_kind(const std::string& text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  // For the name garbage this is GarbageEvents. Only the field target changes it.
  if (found != kNames.end()) return static_cast<FaultKind>(found - kNames.begin());
  return invalid(
      "unknown kind \"" + text +
      "\". Known kinds: drop, duplicate, reorder, delay, restart, forget, die-midstream, stall, "
      "status500, garbage, wrong-block-size, cut-replay, slow-probe");
}

Result<Done> read_target(const std::string& text, FaultKind& kind) {
  if (kind != FaultKind::GarbageEvents && kind != FaultKind::GarbageHttp) {
    return invalid("target is for kind garbage only");
  }
  if (text != "events" && text != "http") return out_of_range("target", "events or http");
  kind = text == "http" ? FaultKind::GarbageHttp : FaultKind::GarbageEvents;
  return Done{};
}

Result<Done> read_field(const std::string& name, const std::string& text, Fault& fault) {
  if (name == "p") {
    fault.probability = SL_TRY(read_chance(text));
  } else if (name == "engine") {
    fault.engine = static_cast<std::uint32_t>(SL_TRY(read_count(name, text, kEngineMax)));
  } else if (name == "count") {
    fault.count = SL_TRY(read_count(name, text, kFaultCountMax));
  } else if (name == "ms") {
    const auto max = static_cast<std::uint64_t>(kFaultTimeMax.count());
    fault.duration = std::chrono::milliseconds(SL_TRY(read_count(name, text, max)));
  } else if (name == "after") {
    fault.after_events =
        static_cast<std::uint32_t>(SL_TRY(read_count(name, text, kFaultEventsMax)));
  } else if (name == "lost") {
    fault.lost = SL_TRY(read_flag(name, text));
  } else if (name == "request") {
    if (text.empty() || text.size() > kFaultRequestBytesMax) {
      return out_of_range(name, "1 to " + std::to_string(kFaultRequestBytesMax) + " characters");
    }
    fault.request = text;
  } else if (name == "target") {
    SL_TRY(read_target(text, fault.kind));
  } else if (name != "kind") {
    return invalid("unknown field \"" + name +
                   "\". Known fields: kind, p, engine, count, ms, after, lost, request, target");
  }
  return Done{};
}

Result<Fault> fault_of(const FaultFields& fields) {
  // The kind comes first, because defaults and other fields depend on it.
  const auto kind = std::find_if(fields.begin(), fields.end(),
                                 [](const auto& field) { return field.first == "kind"; });
  if (kind == fields.end()) return invalid("kind is missing");
  // Defaults of kinds that would have no effect otherwise.
  Fault fault{.kind = SL_TRY(read_kind(kind->second))};
  if (fault.kind == FaultKind::Delay) fault.duration = kDelayDefault;
  if (fault.kind == FaultKind::SlowProbe) fault.duration = kSlowProbeDefault;
  if (fault.kind == FaultKind::DieMidstream) fault.after_events = 1;
  for (const auto& [name, text] : fields) SL_TRY(read_field(name, text, fault));
  if (fault.lost && fault.kind != FaultKind::Drop) return invalid("lost is for kind drop only");
  return fault;
}

}  // namespace

std::string_view name_of(FaultKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Result<Fault> parse_fault(std::string_view text) {
  FaultFields fields;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return invalid("\"" + std::string(part) + "\" is not of the form field=value");
    }
    fields.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return fault_of(fields);
}

Result<Fault> read_fault(const json::Value& object) {
  if (!object.is(json::Kind::Object)) return invalid("the body must be a JSON object");
  FaultFields fields;
  for (const json::Value member : object) {
    const auto text = member.string();
    fields.emplace_back(member.name(), text ? *text : member.raw());
  }
  return fault_of(fields);
}

std::string to_json(const Fault& fault) {
  std::string out = R"({"kind":")" + std::string(name_of(fault.kind)) + '"';
  const auto field = [&out](std::string_view name, const std::string& value) {
    out.append(",\"").append(name).append("\":").append(value);
  };
  if (fault.probability) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", *fault.probability);
    field("p", text.data());
  }
  if (fault.engine) field("engine", std::to_string(*fault.engine));
  if (fault.count) field("count", std::to_string(*fault.count));
  field("ms", std::to_string(fault.duration.count()));
  field("after", std::to_string(fault.after_events));
  field("lost", fault.lost ? "true" : "false");
  if (!fault.request.empty()) field("request", json::to_quoted(fault.request));
  if (fault.kind == FaultKind::GarbageEvents) field("target", "\"events\"");
  if (fault.kind == FaultKind::GarbageHttp) field("target", "\"http\"");
  return out + "}";
}

}  // namespace sightline::faults
