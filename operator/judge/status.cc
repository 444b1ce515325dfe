// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/status.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operator/crd/words.h"
#include "operator/desired/names.h"
#include "operator/desired/scene.h"
#include "operator/judge/consistency.h"
#include "operator/judge/counts.h"
#include "operator/judge/workers.h"
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

std::int64_t ready_frontends(const World& world, const std::string& revision) {
  return std::count_if(world.pods.begin(), world.pods.end(), [&](const Pod& pod) {
    return is_of(pod, desired::kFrontend, revision) && pod.is_ready && !pod.is_ending;
  });
}

// Ready frontends are the endpoints of the client Service.
std::int64_t traffic_percent(const World& world, const std::string& revision) {
  std::int64_t all = 0;
  for (const Stack& stack : world.stacks) all += ready_frontends(world, stack.revision);
  // Rounded to the nearest percent.
  return all == 0 ? 0 : (200 * ready_frontends(world, revision) + all) / (2 * all);
}

RevisionState state_of(const World& world, const crd::RevisionStatus& revision) {
  if (revision.name != world.target) {
    return revision.ready > 0 || revision.desired > 0 ? RevisionState::Draining
                                                      : RevisionState::Retired;
  }
  return revision.traffic_percent > 0 ? RevisionState::Serving : RevisionState::Pending;
}

crd::RevisionStatus revision_of(const World& world, const Stack& stack) {
  crd::RevisionStatus revision;
  revision.name = stack.revision;
  revision.block_size = stack.spec.kv.block_size;
  revision.model_revision = stack.spec.model.revision;
  revision.transfer_mode = crd::word_of(stack.spec.transfer.mode);
  for (const Deployment& deployment : world.deployments) {
    const bool is_its =
        deployment.component == desired::kWorker && deployment.revision == stack.revision;
    if (is_its) revision.desired += deployment.wanted;
  }
  for (const Pod& pod : world.pods) {
    if (!is_of(pod, desired::kWorker, stack.revision) || pod.is_ending) continue;
    if (pod.is_ready) ++revision.ready;
    if (is_routable(world, stack, pod.name)) ++revision.routable;
  }
  revision.traffic_percent = traffic_percent(world, stack.revision);
  revision.state = state_of(world, revision);
  return revision;
}

// Workers of others have no revision, so they count once, with the target.
bool is_counted(const World& world, const Stack& stack, const crd::Pool& pool) {
  return pool.worker_template || stack.revision == world.target;
}

void add_workers(const World& world, const Stack& stack, crd::PoolStatus& status) {
  for (const Pod& pod : world.pods) {
    const crd::Pool* its = pool_of_worker(world, stack, pod.name);
    const bool is_own = pod.component == desired::kWorker;
    if (its == nullptr || its->name != status.name || pod.is_over || pod.is_ending) continue;
    if (is_own && pod.revision != stack.revision) continue;
    if (!is_counted(world, stack, *its)) continue;
    if (pod.is_ready) ++status.ready;
    if (is_routable(world, stack, pod.name)) ++status.routable;
    if (stack.revision == world.target) ++status.updated;
  }
}

crd::PoolStatus pool_of(const World& world, const crd::Pool& pool) {
  crd::PoolStatus status;
  status.name = pool.name;
  status.desired = pool.worker_template ? wanted_of(world, pool)
                                        : static_cast<std::int64_t>(pool.endpoints.size());
  for (const Stack& stack : world.stacks) {
    add_workers(world, stack, status);
    if (stack.revision != world.target) continue;
    for (const crd::Endpoint& endpoint : pool.endpoints) {
      if (!is_routable(world, stack, endpoint.name)) continue;
      ++status.ready;
      ++status.routable;
      ++status.updated;
    }
  }
  // A selector does not ask for a number of pods.
  if (pool.selector) status.desired = status.updated;
  for (const std::int64_t size : block_sizes_of(world, pool.name)) {
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
std::string current_of(const World& world, const std::vector<crd::RevisionStatus>& revisions) {
  const auto serves = [](const crd::RevisionStatus& one) { return one.traffic_percent > 0; };
  for (const crd::RevisionStatus& revision : revisions) {
    if (revision.name != world.target && serves(revision)) return revision.name;
  }
  return world.target;
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

std::string rolling_of(const World& world) {
  for (const Deployment& deployment : world.deployments) {
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

crd::RolloutStatus rollout_of(const World& world, const plan::Plan& plan, WallTime now) {
  const crd::RolloutStatus& before = world.status.rollout;
  const std::string stamp = object::to_timestamp(now);
  crd::RolloutStatus rollout{.phase = phase_of(plan), .message = plan.message};
  rollout.start_time = before.start_time;
  rollout.last_progress_time = before.last_progress_time;
  const bool is_moving = rollout.phase == RolloutPhase::InProgress;
  const bool was_moving =
      before.phase == RolloutPhase::InProgress || before.phase == RolloutPhase::Stuck;
  const bool begins = is_moving && (!was_moving || world.status.target_revision != world.target);
  if (begins || rollout.start_time.empty()) rollout.start_time = stamp;
  // The message contains the counts of workers, so a new message means progress.
  if (begins || before.message != rollout.message || rollout.last_progress_time.empty()) {
    rollout.last_progress_time = stamp;
  }
  if (is_moving && is_stuck(world, rollout, now)) rollout.phase = RolloutPhase::Stuck;
  return rollout;
}

bool is_stuck(const World& world, const crd::RolloutStatus& rollout, WallTime now) {
  const auto since = object::parse_timestamp(rollout.last_progress_time);
  if (!since) return false;
  return now - *since >
         std::chrono::seconds(desired::seconds_of(world.spec.rollout.progress_deadline));
}

crd::Status status_of(const World& world, const Findings& findings, WallTime now) {
  crd::Status status;
  status.observed_generation = world.generation;
  status.conditions =
      merged(world.status.conditions, conditions_of(world, findings), world.generation, now);
  status.url = "http://" + world.name + "." + world.name_space +
               ".svc:" + std::to_string(world.spec.frontend.service.port) + "/v1";
  status.target_revision = world.target;
  const crd::ReadyCount workers = routable_of(world);
  status.workers = std::to_string(workers.ready) + "/" + std::to_string(workers.desired);
  status.backends = backends_of(world.spec);
  status.operator_version = world.status.operator_version;
  status.images = world.status.images;
  for (const Stack& stack : world.stacks) status.revisions.push_back(revision_of(world, stack));
  status.current_revision = current_of(world, status.revisions);
  for (const crd::Pool& pool : world.spec.pools) status.pools.push_back(pool_of(world, pool));
  status.frontend = ready_of(world, desired::kFrontend);
  status.router = ready_of(world, desired::kRouterComponent);
  status.rollout = rollout_of(world, findings.plan, now);
  return status;
}

}  // namespace sightline::judge
