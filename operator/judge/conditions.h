// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

#include "operator/crd/status.h"
#include "operator/judge/cluster_state.h"
#include "operator/plan/plan.h"

// The conditions of a MultimodalRouter's status. Pure.
namespace sightline::judge {

// The types of conditions, in the order of the status.
inline constexpr std::string_view kAccepted = "Accepted";
inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kProgressing = "Progressing";
inline constexpr std::string_view kDegraded = "Degraded";
inline constexpr std::string_view kFrontendReady = "FrontendReady";
inline constexpr std::string_view kRouterReady = "RouterReady";
inline constexpr std::string_view kWorkersReady = "WorkersReady";
inline constexpr std::string_view kMessagingReady = "MessagingReady";
inline constexpr std::string_view kTransferReady = "TransferReady";
inline constexpr std::string_view kIndexConsistent = "IndexConsistent";
inline constexpr std::string_view kPoolsDistinct = "PoolsDistinct";

// Why something is not as requested.
struct Trouble {
  // One word in CamelCase. Empty: there is no trouble.
  std::string reason;
  // The fault, its place, and the remedy.
  std::string message;

  [[nodiscard]] bool is_there() const { return !reason.empty(); }
};

// The results of a reconciliation, besides the ClusterState.
struct Findings {
  // Why the object's spec is not accepted.
  Trouble spec;
  // Why an object could not be written.
  Trouble writing;
  // An object that exists but that the operator cannot see.
  Trouble seeing;
  // The plan of the accepted spec.
  plan::Plan plan;
  // No progress within spec.rollout.progressDeadline.
  bool is_stuck = false;
};

// One condition of each type. merged() adds times and generations.
std::vector<crd::Condition> conditions_of(const ClusterState& cluster, const Findings& findings);

// The earlier conditions, but with Ready false: for a reconciliation that failed before a verdict.
std::vector<crd::Condition> with_trouble(std::vector<crd::Condition> before, const Trouble& trouble,
                                         std::int64_t generation, WallTime when);

// The most bytes of a message. The API server accepts eight times as much.
inline constexpr std::size_t kMessageBytesMax = 4096;

// The conditions `now`, with the time of the last change of each status. An unchanged condition
// keeps its time of `before`.
std::vector<crd::Condition> merged(const std::vector<crd::Condition>& before,
                                   std::vector<crd::Condition> now, std::int64_t generation,
                                   WallTime when);

}  // namespace sightline::judge
