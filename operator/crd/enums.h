// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

// The enums of a MultimodalRouter's spec. words.h gives their text form.
namespace sightline::crd {

enum class EventsMode : std::uint8_t { Exact, Approximate };
enum class Forward : std::uint8_t { Bytes, Url };
enum class TransferMode : std::uint8_t { Disabled, Shm, Nixl };
enum class OnMiss : std::uint8_t { Reprocess, Fail };
enum class NixlBackend : std::uint8_t { Ucx, Libfabric };
enum class ServiceType : std::uint8_t { ClusterIp, LoadBalancer, NodePort };
enum class Policy : std::uint8_t { Kv, LeastLoaded, RoundRobin, Random };
enum class Backend : std::uint8_t { Vllm, Sglang, Trtllm, Simulator };
enum class Role : std::uint8_t { Aggregated, Prefill, Decode, Encode };
enum class PullPolicy : std::uint8_t { Always, IfNotPresent, Never };
enum class Strategy : std::uint8_t { Rolling, BlueGreen, Recreate };
enum class PodMonitor : std::uint8_t { Auto, Enabled, Disabled };
enum class PodUser : std::uint8_t { Fixed, Platform };
enum class LogLevel : std::uint8_t { Debug, Info, Warn, Error };

}  // namespace sightline::crd
