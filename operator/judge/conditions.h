// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

#include "operator/crd/status.h"
#include "operator/judge/world.h"
#include "operator/plan/plan.h"

// What the status says of a MultimodalRouter, condition by condition. Pure.
namespace sightline::judge {

// Types of conditions, in the order of the status.
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

// Why something is not as it was asked for.
struct Trouble {
  std::string reason;   // one word in CamelCase; empty: there is none
  std::string message;  // what is wrong, where, and what to do

  [[nodiscard]] bool is_there() const { return !reason.empty(); }
};

// What a reconciliation found beside the World.
struct Findings {
  Trouble spec;           // why the object's spec is not accepted
  Trouble writing;        // why an object could not be written
  Trouble seeing;         // what is there and is not found
  plan::Plan plan;        // of the accepted spec
  bool is_stuck = false;  // no progress within spec.rollout.progressDeadline
};

// Of all types, each with its verdict; times and generations are left to merged().
std::vector<crd::Condition> conditions_of(const World& world, const Findings& findings);

// What was said before of these types, and that it is not Ready: of a reconciliation that came to
// no verdict.
std::vector<crd::Condition> with_trouble(std::vector<crd::Condition> before, const Trouble& trouble,
                                         std::int64_t generation, WallTime when);

// Of a message; the API server takes eight times as much.
inline constexpr std::size_t kMessageBytesMax = 4096;

// The same with the time at which each verdict changed last: that of `before` where it did not.
std::vector<crd::Condition> merged(const std::vector<crd::Condition>& before,
                                   std::vector<crd::Condition> now, std::int64_t generation,
                                   WallTime when);

}  // namespace sightline::judge
