// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>

// Names and ports that peers see. Each is defined only here.
namespace sightline::contract {

// The prefix of settings in the environment. The flag name follows in upper case, with '_' for '-'.
inline constexpr std::string_view kEnvironmentPrefix = "SIGHTLINE_";

// Response headers of the client port. The first keeps a client's own request id.
inline constexpr std::string_view kRequestIdHeader = "x-request-id";
inline constexpr std::string_view kWorkerHeader = "x-sightline-worker";
// "X/Y": of Y whole blocks of the prompt, the worker is expected to reuse the X leading ones.
inline constexpr std::string_view kOverlapHeader = "x-sightline-overlap";
// The data-parallel rank that answers, if the worker has several.
inline constexpr std::string_view kRankHeader = "x-sightline-dp-rank";

// A response header that makes OpenAI's SDKs not repeat the request.
inline constexpr std::string_view kShouldRetryHeader = "x-should-retry";

// A request header that gives vLLM the data-parallel rank that must answer.
inline constexpr std::string_view kEngineRankHeader = "x-data-parallel-rank";

// Default ports. kNatsPort is for a NATS URL without a port.
inline constexpr std::uint16_t kServerPort = 8000;
inline constexpr std::uint16_t kAdminPort = 9090;
inline constexpr std::uint16_t kSelectionPort = 8092;
inline constexpr std::uint16_t kNatsPort = 4222;

// Paths of the admin port.
inline constexpr std::string_view kLivePath = "/healthz";
inline constexpr std::string_view kReadyPath = "/readyz";
inline constexpr std::string_view kMetricsPath = "/metrics";
inline constexpr std::string_view kWorkersPath = "/v1/workers";
inline constexpr std::string_view kWorkerListPath = "/v1/workers/list";
inline constexpr std::string_view kSettingsPath = "/v1/settings";
inline constexpr std::string_view kExplainPath = "/v1/explain";
inline constexpr std::string_view kIndexPath = "/v1/index";
inline constexpr std::string_view kReplicasPath = "/v1/replicas";
inline constexpr std::string_view kDrainPath = "/drain";  // of an agent only

}  // namespace sightline::contract
