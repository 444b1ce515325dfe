// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The status of a MultimodalRouter as values. crds/sightline.dev_multimodalrouters.yaml defines the
// meaning.
namespace sightline::crd {

enum class ConditionStatus : std::uint8_t { True, False, Unknown };
enum class RevisionState : std::uint8_t { Pending, Serving, Draining, Retired };
enum class RolloutPhase : std::uint8_t { Idle, InProgress, Paused, Completed, Stuck };

// The same as metav1.Condition.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::Unknown;
  std::int64_t observed_generation = 0;
  // RFC 3339, whole seconds.
  std::string last_transition_time;
  std::string reason;
  std::string message;
  bool operator==(const Condition&) const = default;
};

// status.images: the images that the operator has chosen for this object.
struct NotedImages {
  std::string router;
  std::string nats;
  std::string download;
  bool operator==(const NotedImages&) const = default;
};

// status.revisions[].
struct RevisionStatus {
  std::string name;
  RevisionState state = RevisionState::Pending;
  std::int64_t block_size = 0;
  std::string model_revision;
  std::string transfer_mode;
  std::int64_t desired = 0;
  std::int64_t ready = 0;
  std::int64_t routable = 0;
  std::int64_t traffic_percent = 0;
  bool operator==(const RevisionStatus&) const = default;
};

// status.pools[].
struct PoolStatus {
  std::string name;
  std::int64_t desired = 0;
  std::int64_t ready = 0;
  std::int64_t routable = 0;
  std::int64_t updated = 0;
  std::vector<std::int64_t> reported_block_sizes;
  bool operator==(const PoolStatus&) const = default;
};

// status.frontend and status.router.
struct ReadyCount {
  std::int64_t desired = 0;
  std::int64_t ready = 0;
  bool operator==(const ReadyCount&) const = default;
};

// status.rollout.
struct RolloutStatus {
  RolloutPhase phase = RolloutPhase::Idle;
  std::string message;
  // RFC 3339.
  std::string start_time;
  // RFC 3339.
  std::string last_progress_time;
  bool operator==(const RolloutStatus&) const = default;
};

// status.
struct Status {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::string url;
  std::string current_revision;
  std::string target_revision;
  std::string workers;
  std::string backends;
  std::string operator_version;
  NotedImages images;
  std::vector<RevisionStatus> revisions;
  std::vector<PoolStatus> pools;
  ReadyCount frontend;
  ReadyCount router;
  RolloutStatus rollout;
  bool operator==(const Status&) const = default;
};

}  // namespace sightline::crd
