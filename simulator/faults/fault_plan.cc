// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/fault_plan.h"

#include <algorithm>
#include <cstdio>

namespace sightline::faults {
namespace {

std::string seconds_text(double seconds) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.6f", seconds);
  return text.data();
}

}  // namespace

Result<Done> FaultPlan::add(const Fault& fault) {
  // Faults that have ended do not count towards the limit.
  std::erase_if(active_, [](const Active& active) { return active.ended(); });
  if (active_.size() >= kActiveFaultsMax) {
    return client_error(ErrorCode::TooLarge, "fault: " + std::to_string(kActiveFaultsMax) +
                                                 " faults are active. End them by DELETE /fault");
  }
  active_.push_back({.fault = fault});
  return Done{};
}

std::optional<Fault> FaultPlan::draw(FaultKind kind, const FaultTarget& occasion) {
  for (Active& active : active_) {
    if (active.fault.kind != kind || active.ended()) continue;
    if (!occasion.request.starts_with(active.fault.request)) continue;
    // Only a matching fault draws a number.
    if (rng_.unit() >= active.fault.probability.value_or(1.0)) continue;
    ++active.struck;
    note(kind, occasion);
    return active.fault;
  }
  return std::nullopt;
}

void FaultPlan::note(FaultKind kind, const FaultTarget& occasion) {
  const std::chrono::duration<double> now = clock_.wall().time_since_epoch();
  ++totals_[static_cast<std::size_t>(kind)];
  ++strikes_total_;
  strikes_.push_back({.kind = kind, .time_s = now.count(), .occasion = occasion});
  if (strikes_.size() > kStrikesKept) strikes_.pop_front();
}

std::uint64_t FaultPlan::struck(std::string_view name) const {
  std::uint64_t sum = 0;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    if (name_of(static_cast<FaultKind>(kind)) == name) sum += totals_[kind];
  }
  return sum;
}

std::string FaultPlan::to_json(std::uint64_t since) const {
  std::string faults;
  for (const Active& active : active_) {
    std::string fault = faults::to_json(active.fault);
    // The closing brace makes room for one more member.
    fault.back() = ',';
    faults +=
        (faults.empty() ? "" : ",") + fault + "\"struck\":" + std::to_string(active.struck) + "}";
  }
  // The oldest strikes are not kept.
  const std::uint64_t first = strikes_total_ - strikes_.size();
  std::string strikes;
  for (std::uint64_t i = std::max(since, first); i < strikes_total_; ++i) {
    const Strike& strike = strikes_[static_cast<std::size_t>(i - first)];
    const auto& sequence = strike.occasion.sequence;
    strikes += strikes.empty() ? "" : ",";
    strikes += R"({"kind":")" + std::string(name_of(strike.kind)) + R"(","time_s":)" +
               seconds_text(strike.time_s) + R"(,"request":)" +
               json::to_quoted(strike.occasion.request) + R"(,"sequence":)" +
               (sequence ? std::to_string(*sequence) : "null") + "}";
  }
  return R"({"faults":[)" + faults + R"(],"strikes_total":)" + std::to_string(strikes_total_) +
         R"(,"strikes":[)" + strikes + "]}";
}

}  // namespace sightline::faults
