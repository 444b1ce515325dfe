// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "operator/crd/enums.h"
#include "operator/crd/status.h"

// The text form of enums.
namespace sightline::crd {

using std::string_view_literals::operator""sv;

// The words of an enum, in the order of its values.
template <class Enum>
inline constexpr std::array<std::string_view, 0> kWords{};
template <>
inline constexpr std::array kWords<EventsMode> = {"Exact"sv, "Approximate"sv};
template <>
inline constexpr std::array kWords<Forward> = {"Bytes"sv, "URL"sv};
template <>
inline constexpr std::array kWords<TransferMode> = {"disabled"sv, "shm"sv, "nixl"sv};
template <>
inline constexpr std::array kWords<OnMiss> = {"Reprocess"sv, "Fail"sv};
template <>
inline constexpr std::array kWords<NixlBackend> = {"UCX"sv, "LIBFABRIC"sv};
template <>
inline constexpr std::array kWords<ServiceType> = {"ClusterIP"sv, "LoadBalancer"sv, "NodePort"sv};
template <>
inline constexpr std::array kWords<Policy> = {"kv"sv, "least-loaded"sv, "round-robin"sv,
                                              "random"sv};
template <>
inline constexpr std::array kWords<Backend> = {"vllm"sv, "sglang"sv, "trtllm"sv, "simulator"sv};
template <>
inline constexpr std::array kWords<Role> = {"aggregated"sv, "prefill"sv, "decode"sv, "encode"sv};
template <>
inline constexpr std::array kWords<PullPolicy> = {"Always"sv, "IfNotPresent"sv, "Never"sv};
template <>
inline constexpr std::array kWords<Strategy> = {"Rolling"sv, "BlueGreen"sv, "Recreate"sv};
template <>
inline constexpr std::array kWords<PodMonitor> = {"Auto"sv, "Enabled"sv, "Disabled"sv};
template <>
inline constexpr std::array kWords<PodUser> = {"Fixed"sv, "Platform"sv};
template <>
inline constexpr std::array kWords<LogLevel> = {"debug"sv, "info"sv, "warn"sv, "error"sv};
template <>
inline constexpr std::array kWords<ConditionStatus> = {"True"sv, "False"sv, "Unknown"sv};
template <>
inline constexpr std::array kWords<RevisionState> = {"Pending"sv, "Serving"sv, "Draining"sv,
                                                     "Retired"sv};
template <>
inline constexpr std::array kWords<RolloutPhase> = {"Idle"sv, "InProgress"sv, "Paused"sv,
                                                    "Completed"sv, "Stuck"sv};

// The word of a value.
template <class Enum>
std::string_view word_of(Enum value) {
  return kWords<Enum>.at(static_cast<std::size_t>(value));
}

}  // namespace sightline::crd
