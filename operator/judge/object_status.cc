// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/object_status.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operator/crd/words.h"
#include "operator/desired/object_names.h"
#include "operator/desired/render_input.h"
#include "operator/judge/consistency.h"
#include "operator/judge/counts.h"
#include "operator/judge/pool_workers.h"
#include "operator/kube/object/timestamp.h"

namespace sightline::judge {
namespace {

using crd::RevisionState;
using crd::RolloutPhase;

// The limit of the CRD's schema. Only faulty routers report more.
constexpr std::size_t kReportedSizesMax = 16;

bool is_of(const Pod& pod, std::string_view component, const std::string& revision) {
  return pod.component == component && pod.revision == revision && !pod.is_over;
}

std::int64_t ready_frontends(const ClusterState& cluster, const std::string& revision) {
  return std::count_if(cluster.pods.begin(), cluster.pods.end(), [&](const Pod& pod) {
    return is_of(pod, desired::kFrontend, revision) && pod.is_ready && !pod.is_ending;
  });
}

// Ready frontends are the endpoints of the client Service.
std::int64_t traffic_percent(const ClusterState& cluster, const std::string& revision) {
  std::int64_t all = 0;
  for (const Stack& stack : cluster.stacks) all += ready_frontends(cluster, stack.revision);
  // Rounded to the nearest percent.
  return all == 0 ? 0 : (200 * ready_frontends(cluster, revision) + all) / (2 * all);
}

RevisionState state_of(const ClusterState& cluster, const crd::RevisionStatus& revision) {
  if (revision.name != cluster.target) {
    return revision.ready > 0 || revision.desired > 0 ? RevisionState::Draining
                                                      : RevisionState::Retired;
  }
  return revision.traffic_percent > 0 ? RevisionState::Serving : RevisionState::Pending;
}

crd::RevisionStatus revision_of(const ClusterState& cluster, const Stack& stack) {
  crd::RevisionStatus revision;
  revision.name = stack.revision;
  revision.block_size = stack.spec.kv.block_size;
  revision.model_revision = stack.spec.model.revision;
  revision.transfer_mode = crd::word_of(stack.spec.transfer.mode);
  for (const Deployment& deployment : cluster.deployments) {
    const bool is_its =
        deployment.component == desired::kWorker && deployment.revision == stack.revision;
    if (is_its) revision.desired += deployment.wanted;
  }
  for (const Pod& pod : cluster.pods) {
    if (!is_of(pod, desired::kWorker, stack.revision) || pod.is_ending) continue;
    if (pod.is_ready) ++revision.ready;
    if (is_routable(cluster, stack, pod.name)) ++revision.routable;
  }
  revision.traffic_percent = traffic_percent(cluster, stack.revision);
  revision.state = state_of(cluster, revision);
  return revision;
}

// Workers of others have no revision, so they count once, with the target.
bool is_counted(const ClusterState& cluster, const Stack& stack, const crd::Pool& pool) {
  return pool.worker_template || stack.revision == cluster.target;
}

void add_workers(const ClusterState& cluster, const Stack& stack, crd::PoolStatus& status) {
  for (const Pod& pod : cluster.pods) {
    const crd::Pool* its = pool_of_worker(cluster, stack, pod.name);
    const bool is_own = pod.component == desired::kWorker;
    if (its == nullptr || its->name != status.name || pod.is_over || pod.is_ending) continue;
    if (is_own && pod.revision != stack.revision) continue;
    if (!is_counted(cluster, stack, *its)) continue;
    if (pod.is_ready) ++status.ready;
    if (is_routable(cluster, stack, pod.name)) ++status.routable;
    if (stack.revision == cluster.target) ++status.updated;
  }
}

crd::PoolStatus pool_of(const ClusterState& cluster, const crd::Pool& pool) {
  crd::PoolStatus status;
  status.name = pool.name;
  status.desired = pool.worker_template ? wanted_of(cluster, pool)
                                        : static_cast<std::int64_t>(pool.endpoints.size());
  for (const Stack& stack : cluster.stacks) {
    add_workers(cluster, stack, status);
    if (stack.revision != cluster.target) continue;
    for (const crd::Endpoint& endpoint : pool.endpoints) {
      if (!is_routable(cluster, stack, endpoint.name)) continue;
      ++status.ready;
      ++status.routable;
      ++status.updated;
    }
  }
  // A selector does not ask for a number of pods.
  if (pool.selector) status.desired = status.updated;
  for (const std::int64_t size : block_sizes_of(cluster, pool.name)) {
    if (status.reported_block_sizes.size() == kReportedSizesMax) break;
    status.reported_block_sizes.push_back(size);
  }
  return status;
}

std::string backends_of(const crd::Spec& spec) {
  std::set<std::string_view> words;
  for (const crd::Pool& pool : spec.pools) words.insert(crd::word_of(pool.backend));
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ",") + std::string(word);
  return text;
}

// The older of the revisions that serve. Before any serves, the target.
std::string current_of(const ClusterState& cluster,
                       const std::vector<crd::RevisionStatus>& revisions) {
  const auto serves = [](const crd::RevisionStatus& one) { return one.traffic_percent > 0; };
  for (const crd::RevisionStatus& revision : revisions) {
    if (revision.name != cluster.target && serves(revision)) return revision.name;
  }
  return cluster.target;
}

RolloutPhase phase_of(const plan::Plan& plan) {
  switch (plan.phase) {
    case plan::Phase::Completed:
      return RolloutPhase::Completed;
    case plan::Phase::Paused:
      return RolloutPhase::Paused;
    case plan::Phase::Suspended:
      return RolloutPhase::Idle;
    case plan::Phase::Moving:
      return RolloutPhase::InProgress;
  }
  return RolloutPhase::InProgress;
}

}  // namespace

std::string rolling_of(const ClusterState& cluster) {
  for (const Deployment& deployment : cluster.deployments) {
    const std::string& name = deployment.name;
    if (!deployment.is_observed)
      return "the Deployment controller has not observed the latest spec of " + name;
    if (deployment.updated < deployment.wanted) {
      return name + " has " + std::to_string(deployment.updated) + " of " +
             std::to_string(deployment.wanted) + " pods with its latest template";
    }
    const std::int64_t older = deployment.pods - deployment.updated;
    if (older <= 0) continue;
    return name + " has " + std::to_string(older) + (older == 1 ? " pod" : " pods") +
           " with an older template";
  }
  return {};
}

crd::RolloutStatus rollout_of(const ClusterState& cluster, const plan::Plan& plan, WallTime now) {
  const crd::RolloutStatus& before = cluster.status.rollout;
  const std::string stamp = object::to_timestamp(now);
  crd::RolloutStatus rollout{.phase = phase_of(plan), .message = plan.message};
  rollout.start_time = before.start_time;
  rollout.last_progress_time = before.last_progress_time;
  const bool is_moving = rollout.phase == RolloutPhase::InProgress;
  const bool was_moving =
      before.phase == RolloutPhase::InProgress || before.phase == RolloutPhase::Stuck;
  const bool begins =
      is_moving && (!was_moving || cluster.status.target_revision != cluster.target);
  if (begins || rollout.start_time.empty()) rollout.start_time = stamp;
  // The message contains the counts of workers, so a new message means progress.
  if (begins || before.message != rollout.message || rollout.last_progress_time.empty()) {
    rollout.last_progress_time = stamp;
  }
  if (is_moving && is_stuck(cluster, rollout, now)) rollout.phase = RolloutPhase::Stuck;
  return rollout;
}

bool is_stuck(const ClusterState& cluster, const crd::RolloutStatus& rollout, WallTime now) {
  const auto since = object::parse_timestamp(rollout.last_progress_time);
  if (!since) return false;
  return now - *since >
         std::chrono::seconds(desired::seconds_of(cluster.spec.rollout.progress_deadline));
}

crd::Status status_of(const ClusterState& cluster, const Findings& findings, WallTime now) {
  crd::Status status;
  status.observed_generation = cluster.generation;
  status.conditions =
      merged(cluster.status.conditions, conditions_of(cluster, findings), cluster.generation, now);
  status.url = "http://" + cluster.name + "." + cluster.name_space +
               ".svc:" + std::to_string(cluster.spec.frontend.service.port) + "/v1";
  status.target_revision = cluster.target;
  const crd::ReadyCount workers = routable_of(cluster);
  status.workers = std::to_string(workers.ready) + "/" + std::to_string(workers.desired);
  status.backends = backends_of(cluster.spec);
  status.operator_version = cluster.status.operator_version;
  status.images = cluster.status.images;
  for (const Stack& stack : cluster.stacks) status.revisions.push_back(revision_of(cluster, stack));
  status.current_revision = current_of(cluster, status.revisions);
  for (const crd::Pool& pool : cluster.spec.pools) status.pools.push_back(pool_of(cluster, pool));
  status.frontend = ready_of(cluster, desired::kFrontend);
  status.router = ready_of(cluster, desired::kRouterComponent);
  status.rollout = rollout_of(cluster, findings.plan, now);
  return status;
}

}  // namespace sightline::judge
