// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/case.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "operator/desired/object_names.h"
#include "operator/judge/counts.h"
#include "operator/judge/pool_workers.h"

namespace sightline::reconcile {

using object::Value;

namespace {

// The schema's default for objects without a value.
constexpr std::int64_t kFrontends = 2;

// Requests of a revision continue until its workers and frontends are gone.
bool is_in_use(const judge::ClusterState& cluster, const std::string& revision) {
  const auto counts = [&](std::string_view component) {
    return component == desired::kWorker || component == desired::kFrontend;
  };
  const bool has_pods = std::any_of(cluster.pods.begin(), cluster.pods.end(), [&](const auto& pod) {
    return pod.revision == revision && !pod.is_over && counts(pod.component);
  });
  return has_pods || std::any_of(cluster.deployments.begin(), cluster.deployments.end(),
                                 [&](const judge::Deployment& deployment) {
                                   return deployment.revision == revision &&
                                          deployment.wanted > 0 && counts(deployment.component);
                                 });
}

bool has_pods(const judge::ClusterState& cluster, std::string_view component,
              const std::string& revision) {
  return std::any_of(cluster.pods.begin(), cluster.pods.end(), [&](const judge::Pod& pod) {
    return pod.component == component && pod.revision == revision && !pod.is_over;
  });
}

// The replicas that its Deployments of workers have now.
plan::Replicas wanted_now(const judge::ClusterState& cluster, const judge::Stack& stack) {
  plan::Replicas wanted;
  for (const judge::Deployment& deployment : cluster.deployments) {
    const bool is_its =
        deployment.component == desired::kWorker && deployment.revision == stack.revision;
    if (is_its) wanted[deployment.pool] = deployment.wanted;
  }
  return wanted;
}

plan::Replicas planned_of(const Case& now, const judge::Stack& stack) {
  const auto planned = now.findings.plan.replicas.find(stack.revision);
  return planned == now.findings.plan.replicas.end() ? plan::Replicas{} : planned->second;
}

// True for an older revision that must have no workers any more, not even lent ones: the target has
// these.
bool is_leaving(const Case& now, const judge::Stack& stack) {
  const plan::Replicas planned = planned_of(now, stack);
  const bool has_none = std::all_of(planned.begin(), planned.end(),
                                    [](const auto& pool) { return pool.second == 0; });
  return stack.revision != now.cluster.target && has_none && judge::is_replaced(now.cluster, stack);
}

// Whether requests find another frontend if those of this revision go, or need not find one.
bool may_leave(const judge::ClusterState& cluster, const judge::Stack& stack) {
  if (cluster.spec.suspend || cluster.spec.rollout.strategy == crd::Strategy::Recreate) return true;
  return std::any_of(cluster.pods.begin(), cluster.pods.end(), [&](const judge::Pod& pod) {
    return pod.component == desired::kFrontend && pod.revision != stack.revision && pod.is_ready &&
           !pod.is_ending;
  });
}

// By revision. A leaving revision's lent workers do not count.
std::map<std::string, std::int64_t> frontends_of(const Case& now) {
  const judge::ClusterState& cluster = now.cluster;
  std::vector<plan::Revision> observed = judge::revisions_of(cluster);
  for (std::size_t i = 0; i < observed.size(); ++i) {
    if (is_leaving(now, cluster.stacks[i])) observed[i].lent = 0;
  }
  return plan::frontends_of(cluster.spec.frontend.replicas.value_or(kFrontends), target_of(cluster),
                            observed);
}

}  // namespace

plan::RolloutTarget target_of(const judge::ClusterState& cluster) {
  plan::RolloutTarget target{.revision = cluster.target, .replicas = {}};
  for (const crd::Pool& pool : cluster.spec.pools) {
    if (pool.worker_template) target.replicas[pool.name] = judge::wanted_of(cluster, pool);
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

desired::Sizes sizes_of(const Case& now, const judge::Stack& stack) {
  const judge::ClusterState& cluster = now.cluster;
  const auto shares = frontends_of(now);
  const auto share = shares.find(stack.revision);
  desired::Sizes sizes;
  sizes.routers = cluster.spec.suspend ? 0 : stack.spec.router.replicas;
  sizes.frontends = cluster.spec.suspend || share == shares.end() ? 0 : share->second;
  sizes.pools = planned_of(now, stack);
  if (is_leaving(now, stack)) {
    // Frontends go before the last workers. A frontend without a worker would refuse the requests
    // that still arrive.
    if (may_leave(cluster, stack)) sizes.frontends = 0;
    if (has_pods(cluster, desired::kFrontend, stack.revision))
      sizes.pools = wanted_now(cluster, stack);
  }
  // An autoscaler sets the target's frontends. Older revisions still get their share.
  if (stack.spec.frontend.autoscaling && !cluster.spec.suspend &&
      stack.revision == cluster.target) {
    sizes.frontends.reset();
  }
  return sizes;
}

void note_images(KeptSpecs& kept, const crd::Spec& asked, const crd::NotedImages& flags,
                 const std::string& version) {
  const bool is_told = !asked.version.empty() && asked.version == version;
  // Images stay as first recorded, so an upgrade of the operator does not restart pods.
  // spec.version requests new ones.
  if (!kept.version.empty() && (!is_told || kept.version == version)) return;
  kept.images = flags;
  kept.version = version;
}

void settle_stacks(Case& now) {
  judge::ClusterState& cluster = now.cluster;
  std::map<std::string, crd::Spec> live;
  for (const auto& [revision, spec] : now.kept.revisions) {
    // A revision without pods needs no spec any more.
    if (revision == cluster.target || !is_in_use(cluster, revision)) continue;
    live[revision] = spec;
    cluster.stacks.push_back({revision, with_live_fields(spec, cluster.spec)});
  }
  // The target comes last, because callers take the last stack as the target.
  live[cluster.target] = cluster.spec;
  cluster.stacks.push_back({cluster.target, cluster.spec});
  now.kept.accepted = cluster.spec;
  now.kept.revisions = std::move(live);
}

std::vector<const crd::Pool*> selector_pools(const judge::ClusterState& cluster) {
  std::set<std::string_view> names;
  std::vector<const crd::Pool*> pools;
  // From the newest revision, whose selector counts.
  for (auto stack = cluster.stacks.rbegin(); stack != cluster.stacks.rend(); ++stack) {
    for (const crd::Pool& pool : stack->spec.pools) {
      if (names.insert(pool.name).second && pool.selector) pools.push_back(&pool);
    }
  }
  return pools;
}

void add_selected(judge::ClusterState& cluster, std::vector<judge::Pod> selected) {
  std::map<std::string, std::size_t> places;
  const std::size_t own = cluster.pods.size();
  for (judge::Pod& pod : selected) {
    const auto [place, is_new] = places.emplace(pod.name, own + places.size());
    if (is_new) {
      cluster.pods.push_back(std::move(pod));
    } else {
      cluster.pods[place->second].also_in.push_back(pod.pool);
    }
  }
  // Sorted by name, so equal worlds give equal statuses.
  std::stable_sort(
      cluster.pods.begin(), cluster.pods.end(),
      [](const judge::Pod& left, const judge::Pod& right) { return left.name < right.name; });
}

std::set<std::string> unknown_revisions(const judge::ClusterState& cluster) {
  std::set<std::string> unknown;
  for (const judge::Deployment& deployment : cluster.deployments) {
    const std::string& revision = deployment.revision;
    const bool is_known =
        std::any_of(cluster.stacks.begin(), cluster.stacks.end(),
                    [&](const judge::Stack& one) { return one.revision == revision; });
    if (!is_known && !revision.empty() && is_in_use(cluster, revision)) unknown.insert(revision);
  }
  return unknown;
}

std::set<std::string> unknown_with_frontends(const judge::ClusterState& cluster) {
  std::set<std::string> unknown = unknown_revisions(cluster);
  std::erase_if(unknown, [&](const std::string& revision) {
    return std::none_of(cluster.deployments.begin(), cluster.deployments.end(),
                        [&](const judge::Deployment& one) {
                          return one.component == desired::kFrontend && one.revision == revision;
                        });
  });
  return unknown;
}

bool is_replaced_in_full(const Case& now) {
  const judge::ClusterState& cluster = now.cluster;
  const bool has_frontend =
      std::any_of(cluster.pods.begin(), cluster.pods.end(), [&](const judge::Pod& pod) {
        return pod.component == desired::kFrontend && pod.revision == cluster.target &&
               pod.is_ready && !pod.is_ending;
      });
  const bool is_all_there = now.findings.plan.phase == plan::Phase::Completed && has_frontend;
  return is_all_there || cluster.spec.suspend;
}

judge::Trouble unseen_of(const Case& now) {
  for (const judge::Stack& stack : now.cluster.stacks) {
    const bool is_held =
        std::any_of(now.cluster.routers.begin(), now.cluster.routers.end(),
                    [&](const judge::RouterReport& one) {
                      return one.revision == stack.revision && one.pushed.size() > 0;
                    });
    if (!is_held || !judge::is_list_unknown(now.cluster, stack)) continue;
    return {.reason = "WorkersNotFound",
            .message = judge::unseen_workers(now.cluster, stack) +
                       ". Routers keep the workers that they have. Check the owners and labels of "
                       "the Deployment, its ReplicaSets and its pods"};
  }
  const std::set<std::string> unknown = unknown_revisions(now.cluster);
  if (unknown.empty()) return {};
  return {.reason = "RevisionUnknown",
          .message = "revision " + *unknown.begin() + " has pods, but no spec in ConfigMap " +
                     desired::shared_name(now.owner, "specs") +
                     ". The revision stays unchanged until revision " + now.cluster.target +
                     " serves in full"};
}

namespace {

Value named(const judge::ClusterState& cluster, const judge::Pod& pod) {
  Value patch = Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  patch.set({"metadata", "name"}, pod.name);
  patch.set({"metadata", "namespace"}, cluster.name_space);
  // The UID makes the API server refuse a patch for another pod of the same name.
  patch.set({"metadata", "uid"}, pod.uid);
  return patch;
}

Value gate(bool is_routable, const std::string& when) {
  return Value::object({{"type", desired::kRoutableGate},
                        {"status", is_routable ? "True" : "False"},
                        {"reason", is_routable ? "Admitted" : "NotAdmitted"},
                        {"lastTransitionTime", when}});
}

}  // namespace

std::vector<Value> pod_patches(const judge::ClusterState& cluster, const std::string& when) {
  const auto gates = judge::gates_to_set(cluster);
  const auto lists = judge::lists_to_show(cluster);
  std::vector<Value> patches;
  for (const judge::Pod& pod : cluster.pods) {
    const auto routable = gates.find(pod.name);
    const auto list = lists.find(pod.name);
    // A pod has either a gate (worker) or a list (agent).
    if (routable != gates.end()) {
      patches.push_back(named(cluster, pod));
      patches.back().set({"status", "conditions"}, Value::array({gate(routable->second, when)}));
    } else if (list != lists.end()) {
      patches.push_back(named(cluster, pod));
      patches.back().set({"metadata", "annotations", desired::kListAnnotation}, list->second);
    }
  }
  return patches;
}

}  // namespace sightline::reconcile
