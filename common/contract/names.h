// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string_view>

// Names and ports that peers see; each is written here once.
namespace sightline::contract {

// Settings in the environment: prefix + flag name in upper case, '-' as '_'.
inline constexpr std::string_view kEnvironmentPrefix = "SIGHTLINE_";

// Response headers of the client port. A client's own request id is kept.
inline constexpr std::string_view kRequestIdHeader = "x-request-id";
inline constexpr std::string_view kWorkerHeader = "x-sightline-worker";
// "X/Y": leading blocks of the prompt that the worker is expected to reuse, of whole blocks.
inline constexpr std::string_view kOverlapHeader = "x-sightline-overlap";
// The data-parallel rank that answers, where the worker has several.
inline constexpr std::string_view kRankHeader = "x-sightline-dp-rank";

// Response header that tells OpenAI's SDKs not to send the same request again.
inline constexpr std::string_view kShouldRetryHeader = "x-should-retry";

// Request header by which vLLM is told the data-parallel rank that is to answer.
inline constexpr std::string_view kEngineRankHeader = "x-data-parallel-rank";

inline constexpr std::uint16_t kServerPort = 8000;
inline constexpr std::uint16_t kAdminPort = 9090;
inline constexpr std::uint16_t kSelectionPort = 8092;
inline constexpr std::uint16_t kNatsPort = 4222;  // of a server whose URL gives none

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
inline constexpr std::string_view kDrainPath = "/drain";  // of an agent

}  // namespace sightline::contract
