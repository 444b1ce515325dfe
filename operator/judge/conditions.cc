// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/conditions.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "common/base/bytes.h"

#include "operator/desired/object_names.h"
#include "operator/desired/unobeyed.h"
#include "operator/judge/consistency.h"
#include "operator/judge/counts.h"
#include "operator/judge/pool_workers.h"
#include "operator/kube/object/timestamp.h"

namespace sightline::judge {
namespace {

using crd::Condition;
using crd::ConditionStatus;

Condition condition(std::string_view type, ConditionStatus status, std::string reason,
                    std::string message) {
  Condition made;
  made.type = type;
  made.status = status;
  made.reason = std::move(reason);
  made.message = std::move(message);
  return made;
}

Condition yes(std::string_view type, std::string reason, std::string message) {
  return condition(type, ConditionStatus::True, std::move(reason), std::move(message));
}

Condition no(std::string_view type, std::string reason, std::string message) {
  return condition(type, ConditionStatus::False, std::move(reason), std::move(message));
}

std::string fraction(const crd::ReadyCount& count) {
  return std::to_string(count.ready) + " of " + std::to_string(count.desired);
}

// The first problem that keeps a pod of the component from running.
std::string trouble_of(const ClusterState& cluster, std::string_view component) {
  for (const Pod& pod : cluster.pods) {
    if (pod.component == component && !pod.trouble.empty()) return pod.name + ": " + pod.trouble;
  }
  for (const Deployment& deployment : cluster.deployments) {
    if (deployment.component != component || deployment.trouble.empty()) continue;
    return deployment.name + ": " + deployment.trouble;
  }
  return {};
}

std::string any_trouble(const ClusterState& cluster) {
  for (const auto component : {desired::kNats, desired::kRouterComponent, desired::kWorker,
                               desired::kAgent, desired::kFrontend}) {
    std::string trouble = trouble_of(cluster, component);
    if (!trouble.empty()) return trouble;
  }
  return {};
}

std::string with_trouble(std::string text, const std::string& trouble) {
  return trouble.empty() ? text : std::move(text) + "; " + trouble;
}

// Without an accepted spec there is no plan.
bool is_planned(const Findings& findings) { return !findings.plan.message.empty(); }

Condition accepted(const ClusterState& cluster, const Findings& findings) {
  if (!findings.spec.is_there()) {
    std::string text = "the operator can render the spec";
    for (const std::string& field : desired::unobeyed(cluster.spec)) text += ". " + field;
    return yes(kAccepted, "Valid", text);
  }
  const bool was_accepted = is_planned(findings);
  return no(kAccepted, findings.spec.reason,
            findings.spec.message + (was_accepted ? ". The last accepted spec keeps running" : ""));
}

Condition component_ready(const ClusterState& cluster, std::string_view type,
                          std::string_view component) {
  const crd::ReadyCount count = ready_of(cluster, component);
  const std::string text = count.desired == 0 ? "no Deployment of this component requests pods yet"
                                              : fraction(count) + " are ready";
  if (cluster.spec.suspend) return no(type, "Suspended", "spec.suspend is set");
  if (count.ready >= count.desired && count.desired > 0) return yes(type, "PodsReady", text);
  return no(type, "PodsNotReady", with_trouble(text, trouble_of(cluster, component)));
}

Condition workers_ready(const ClusterState& cluster) {
  const crd::ReadyCount count = routable_of(cluster);
  const std::string text = fraction(count) + " workers are routable";
  if (cluster.spec.suspend) return no(kWorkersReady, "Suspended", "spec.suspend is set");
  if (count.ready >= count.desired) return yes(kWorkersReady, "WorkersRoutable", text);
  std::string trouble = trouble_of(cluster, desired::kWorker);
  if (trouble.empty()) trouble = trouble_of(cluster, desired::kAgent);
  return no(kWorkersReady, trouble.empty() ? "NotRoutable" : "PodsNotReady",
            with_trouble(with_trouble(text, trouble), why_not_routable(cluster)));
}

// Only the events of a StatefulSet say why it cannot create a pod.
std::string nats_trouble_of(const ClusterState& cluster) {
  const bool has_pods = std::any_of(cluster.pods.begin(), cluster.pods.end(),
                                    [](const Pod& pod) { return pod.component == desired::kNats; });
  if (has_pods) return trouble_of(cluster, desired::kNats);
  return "StatefulSet " + cluster.name + "-nats has no pods: see its events";
}

Condition messaging_ready(const ClusterState& cluster) {
  if (cluster.spec.suspend) return no(kMessagingReady, "Suspended", "spec.suspend is set");
  if (cluster.nats_ready) {
    const std::int64_t wanted = cluster.spec.nats.managed ? cluster.spec.nats.managed->replicas : 1;
    const std::string text =
        fraction({.desired = wanted, .ready = *cluster.nats_ready}) + " NATS servers are ready";
    if (*cluster.nats_ready < wanted) {
      return no(kMessagingReady, "PodsNotReady", with_trouble(text, nats_trouble_of(cluster)));
    }
  }
  for (const RouterReport& router : cluster.routers) {
    if (router.nats_trouble.empty() || !router.problem.empty()) continue;
    return no(kMessagingReady, "NotConnected", router.pod + ": NATS " + router.nats_trouble);
  }
  const bool is_told = std::any_of(cluster.routers.begin(), cluster.routers.end(),
                                   [](const auto& router) { return router.problem.empty(); });
  if (!is_told) {
    return condition(kMessagingReady, ConditionStatus::Unknown, "NoRouterAnswers",
                     "no router answers the operator");
  }
  return yes(kMessagingReady, "Connected", "all routers that answer are connected to NATS");
}

Condition transfer_ready(const ClusterState& cluster) {
  if (cluster.spec.transfer.mode == crd::TransferMode::Disabled) {
    return yes(kTransferReady, "Disabled", "workers receive and process the images themselves");
  }
  return no(kTransferReady, "NotImplemented",
            "frontends do not use transfer.mode yet: workers receive and process the images "
            "themselves. Set it to disabled to make this condition true");
}

Condition pools_distinct(const ClusterState& cluster) {
  const std::vector<std::string> twice = workers_named_twice(cluster);
  if (twice.empty()) return yes(kPoolsDistinct, "EachInOnePool", "no worker is in two pools");
  std::string text = "these workers are in several pools and count only for the first one: ";
  for (const std::string& worker : twice) {
    if (text.size() > kMessageBytesMax) break;
    text += (&worker == twice.data() ? "" : "; ") + worker;
  }
  return no(kPoolsDistinct, "WorkerInTwoPools", text + ". Make the selectors narrower");
}

Condition progressing(const ClusterState& cluster, const Findings& findings) {
  if (!is_planned(findings)) return no(kProgressing, "NothingAccepted", "no spec was accepted yet");
  const std::string& step = findings.plan.message;
  switch (findings.plan.phase) {
    case plan::Phase::Completed:
      return no(kProgressing, "Completed",
                "revision " + cluster.target + " is the only one: " + step);
    case plan::Phase::Paused:
      return no(kProgressing, "Paused", step);
    case plan::Phase::Suspended:
      return no(kProgressing, "Suspended", step);
    case plan::Phase::Moving:
      break;
  }
  if (findings.is_stuck) {
    return no(kProgressing, "ProgressDeadlineExceeded",
              step + ". No progress for " + cluster.spec.rollout.progress_deadline);
  }
  return yes(kProgressing, "RollingOut", step);
}

const Condition* find(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& one) { return one.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

// The first false one of these conditions, else the first unknown one, which follows from
// another.
const Condition* first_untrue(const std::vector<Condition>& conditions,
                              std::initializer_list<std::string_view> types) {
  const Condition* unknown = nullptr;
  for (const std::string_view type : types) {
    const Condition* one = find(conditions, type);
    if (one == nullptr || one->status == ConditionStatus::True) continue;
    if (one->status == ConditionStatus::False) return one;
    if (unknown == nullptr) unknown = one;
  }
  return unknown;
}

const Trouble& cause_of(const Findings& findings) {
  return findings.writing.is_there() ? findings.writing : findings.seeing;
}

// True if requests are answered, perhaps with reduced quality.
bool is_serving(const ClusterState& cluster) {
  return ready_of(cluster, desired::kFrontend).ready > 0 &&
         ready_of(cluster, desired::kRouterComponent).ready > 0 && has_answering_worker(cluster);
}

// Routers keep workers that this operator does not find, so it cannot say that no worker is
// routable.
bool keeps_unseen_workers(const ClusterState& cluster) {
  return std::any_of(cluster.stacks.begin(), cluster.stacks.end(),
                     [&](const Stack& stack) { return is_list_unknown(cluster, stack); });
}

Condition ready(const ClusterState& cluster, const Findings& findings,
                const std::vector<Condition>& others) {
  const Condition* untrue = first_untrue(others, {kAccepted});
  // A failed write or read comes first, because other conditions follow from it.
  const Trouble& cause = cause_of(findings);
  if (untrue == nullptr && cause.is_there()) return no(kReady, cause.reason, cause.message);
  if (untrue == nullptr) {
    untrue = first_untrue(others, {kMessagingReady, kRouterReady, kFrontendReady, kWorkersReady,
                                   kIndexConsistent, kPoolsDistinct});
  }
  if (untrue != nullptr) {
    return no(kReady, untrue->reason, untrue->type + ": " + untrue->message);
  }
  if (findings.plan.phase == plan::Phase::Moving) {
    return no(kReady, "Updating", with_trouble(findings.plan.message, any_trouble(cluster)));
  }
  return yes(kReady, "AsWanted", ready_text(cluster));
}

Condition degraded(const ClusterState& cluster, const Findings& findings,
                   const std::vector<Condition>& others) {
  if (cluster.spec.suspend) return no(kDegraded, "Suspended", "spec.suspend is set");
  if (!is_serving(cluster)) {
    const Condition* untrue =
        first_untrue(others, {kRouterReady, kFrontendReady, kWorkersReady, kMessagingReady});
    std::string why = untrue == nullptr ? "" : ": " + untrue->type + ": " + untrue->message;
    if (cause_of(findings).is_there()) why = ": " + cause_of(findings).message;
    return yes(kDegraded, "NotServing", "no request can be answered" + why);
  }
  const Condition* consistent = find(others, kIndexConsistent);
  if (consistent != nullptr && consistent->status == ConditionStatus::False &&
      consistent->reason != "NotImplemented") {
    return yes(kDegraded, consistent->reason, consistent->message);
  }
  if (routable_of(cluster).ready == 0 && !keeps_unseen_workers(cluster)) {
    return yes(kDegraded, "WithoutOverlap",
               "routers choose workers by load alone: " + find(others, kWorkersReady)->message);
  }
  if (findings.is_stuck) {
    return yes(kDegraded, "ProgressDeadlineExceeded", findings.plan.message);
  }
  return no(kDegraded, "Serving", "requests are answered");
}

}  // namespace

std::vector<Condition> conditions_of(const ClusterState& cluster, const Findings& findings) {
  std::vector<Condition> parts = {
      accepted(cluster, findings),
      progressing(cluster, findings),
      component_ready(cluster, kFrontendReady, desired::kFrontend),
      component_ready(cluster, kRouterReady, desired::kRouterComponent),
      workers_ready(cluster),
      messaging_ready(cluster),
      transfer_ready(cluster),
      index_consistent(cluster),
      pools_distinct(cluster),
  };
  Condition summary = ready(cluster, findings, parts);
  Condition bad = degraded(cluster, findings, parts);
  // For readers: Accepted, Ready, Progressing and Degraded come first.
  parts.insert(parts.begin() + 1, std::move(summary));
  parts.insert(parts.begin() + 3, std::move(bad));
  return parts;
}

std::vector<Condition> with_trouble(std::vector<Condition> before, const Trouble& trouble,
                                    std::int64_t generation, WallTime when) {
  // Conditions of other types belong to other writers.
  constexpr std::array kTypes = {kAccepted,      kReady,           kProgressing,  kDegraded,
                                 kFrontendReady, kRouterReady,     kWorkersReady, kMessagingReady,
                                 kTransferReady, kIndexConsistent, kPoolsDistinct};
  std::erase_if(before, [&](const Condition& one) {
    return std::find(kTypes.begin(), kTypes.end(), one.type) == kTypes.end();
  });
  auto made = merged(before, {no(kReady, trouble.reason, trouble.message)}, generation, when);
  const auto same = std::find_if(before.begin(), before.end(),
                                 [](const Condition& one) { return one.type == kReady; });
  (same == before.end() ? before.emplace_back() : *same) = std::move(made.front());
  return before;
}

std::vector<Condition> merged(const std::vector<Condition>& before, std::vector<Condition> now,
                              std::int64_t generation, WallTime when) {
  for (Condition& one : now) {
    // lastTransitionTime is the time when the status changed, not the reason or the message.
    const Condition* same = find(before, one.type);
    const bool is_unchanged = same != nullptr && same->status == one.status;
    one.last_transition_time =
        is_unchanged ? same->last_transition_time : object::to_timestamp(when);
    one.observed_generation = generation;
    // The API server refuses a condition without a message, and errors from others may have no
    // text.
    if (one.message.empty()) one.message = one.reason;
    // Pods, routers and the API server do not limit the length of their messages.
    if (one.message.size() > kMessageBytesMax) {
      one.message = std::string(utf8_prefix(one.message, kMessageBytesMax));
    }
  }
  return now;
}

}  // namespace sightline::judge
