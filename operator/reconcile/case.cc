// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/case.h"

#include <algorithm>
#include <utility>

#include "operator/desired/names.h"
#include "operator/judge/counts.h"

namespace sightline::reconcile {
namespace {

// Requests of a revision go on until its workers and frontends are gone.
bool is_in_use(const judge::World& world, const std::string& revision) {
  const auto counts = [&](std::string_view component) {
    return component == desired::kWorker || component == desired::kFrontend;
  };
  const bool has_pods = std::any_of(world.pods.begin(), world.pods.end(), [&](const auto& pod) {
    return pod.revision == revision && !pod.is_over && counts(pod.component);
  });
  return has_pods || std::any_of(world.deployments.begin(), world.deployments.end(),
                                 [&](const judge::Deployment& deployment) {
                                   return deployment.revision == revision &&
                                          deployment.wanted > 0 && counts(deployment.component);
                                 });
}

}  // namespace

plan::Target target_of(const judge::World& world) {
  plan::Target target{.revision = world.target, .replicas = {}};
  for (const crd::Pool& pool : world.spec.pools) {
    if (pool.worker_template) target.replicas[pool.name] = judge::wanted_of(world, pool);
  }
  return target;
}

plan::Rules rules_of(const crd::Spec& spec) {
  return {.strategy = spec.rollout.strategy,
          .max_surge = spec.rollout.max_surge,
          .max_unavailable = spec.rollout.max_unavailable,
          .is_paused = spec.rollout.paused,
          .is_suspended = spec.suspend};
}

void note_images(KeptSpecs& kept, const crd::Spec& asked, const crd::NotedImages& flags,
                 const std::string& version) {
  const bool is_told = !asked.version.empty() && asked.version == version;
  if (!kept.version.empty() && (!is_told || kept.version == version)) return;
  kept.images = flags;
  kept.version = version;
}

void settle_stacks(Case& now) {
  judge::World& world = now.world;
  std::map<std::string, crd::Spec> live;
  for (const auto& [revision, spec] : now.kept.revisions) {
    if (revision == world.target || !is_in_use(world, revision)) continue;
    live[revision] = spec;
    world.stacks.push_back({revision, with_live_fields(spec, world.spec)});
  }
  live[world.target] = world.spec;
  world.stacks.push_back({world.target, world.spec});
  now.kept.accepted = world.spec;
  now.kept.revisions = std::move(live);
}

}  // namespace sightline::reconcile
