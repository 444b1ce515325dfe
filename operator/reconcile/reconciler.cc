// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/reconciler.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/json.h"
#include "common/base/log.h"

#include "operator/crd/read.h"
#include "operator/crd/write.h"
#include "operator/desired/objects.h"
#include "operator/judge/counts.h"
#include "operator/judge/pushes.h"
#include "operator/judge/status.h"
#include "operator/judge/workers.h"
#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"
#include "operator/owned/kinds.h"
#include "operator/plan/plan.h"

namespace sightline::reconcile {

using client::Answer;
using client::Failure;
using client::Reason;
using object::Key;
using object::Value;

namespace {

Failure unreadable(const Error& error) {
  Failure made;
  made.reason = Reason::Malformed;
  made.message = "the object cannot be read: " + error.param + ": " + error.message;
  return made;
}

// For what was just written to come back on the watch.
constexpr std::chrono::milliseconds kCacheWait{50};
// As the schema has it for objects that say nothing.
constexpr std::int64_t kFrontends = 2;

// Nothing that follows would be written either.
bool ends_everything(const Failure& failure) {
  return failure.reason == Reason::NotLeading || failure.reason == Reason::Cancelled ||
         failure.reason == Reason::Unauthorized;
}

Answer<Case> case_of(const Value& object) {
  Case now;
  now.object = object;
  object::name_kind(now.object, owned::routers_resource());
  const Key key = object::key_of(object);
  now.owner = {.name_space = key.name_space, .name = key.name};
  now.reference = object::controller_reference(now.object);
  auto document = json::Document::parse(object.to_text());
  if (!document.ok()) return unreadable(document.error());
  auto spec = crd::read_spec(document->root());
  if (!spec.ok()) return unreadable(spec.error());
  now.asked = std::move(*spec);
  // What cannot be read is written anew.
  auto status = crd::read_status(document->root());
  if (status.ok()) now.before = std::move(*status);
  now.world.status = now.before;
  now.world.name_space = key.name_space;
  now.world.name = key.name;
  now.world.uid = object::uid_of(object);
  now.world.generation = object.at({"metadata", "generation"}).integer().value_or(0);
  return now;
}

bool has_pods(const judge::World& world, std::string_view component, const std::string& revision) {
  return std::any_of(world.pods.begin(), world.pods.end(), [&](const judge::Pod& pod) {
    return pod.component == component && pod.revision == revision && !pod.is_over;
  });
}

// An older revision that is to have no workers any more.
bool is_leaving(const judge::World& world, const judge::Stack& stack,
                const plan::Replicas& planned) {
  const bool has_none = std::all_of(planned.begin(), planned.end(),
                                    [](const auto& pool) { return pool.second == 0; });
  return stack.revision != world.target && has_none;
}

// What its Deployments of workers are asked for at present.
plan::Replicas wanted_now(const judge::World& world, const judge::Stack& stack) {
  plan::Replicas wanted;
  for (const judge::Deployment& deployment : world.deployments) {
    const bool is_its =
        deployment.component == desired::kWorker && deployment.revision == stack.revision;
    if (is_its) wanted[deployment.pool] = deployment.wanted;
  }
  return wanted;
}

Value gate_status(const Value& pod, bool routable, const std::string& when) {
  Value condition = Value::object();
  condition.member("type") = desired::kRoutableGate;
  condition.member("status") = routable ? "True" : "False";
  condition.member("reason") = routable ? "Admitted" : "NotAdmitted";
  condition.member("lastTransitionTime") = when;
  Value patch = Value::object();
  patch.member("apiVersion") = "v1";
  patch.member("kind") = "Pod";
  patch.member("metadata") = pod["metadata"];
  patch.set({"status", "conditions"}, Value::array({condition}));
  return patch;
}

}  // namespace

Reconciler::Reconciler(Options options, const Around& around)
    : options_(std::move(options)),
      around_(around),
      observer_(around.api, around.caches, around.routers),
      applier_(around.api, around.caches),
      scales_(around.api, around.caches),
      secrets_(around.api, around.clock) {}

Answer<std::optional<Duration>> Reconciler::reconcile(const Key& key) {
  const auto object = around_.caches.routers().get(key);
  if (object == nullptr || object::is_being_deleted(*object)) {
    forget(key);
    return std::optional<Duration>();
  }
  if (is_outdated(key, *object)) return std::optional<Duration>(kCacheWait);
  Case now = SL_TRY(case_of(*object));
  SL_TRY(observe(now));
  judge_spec(now);
  if (now.kept.accepted) {
    settle(now);
    now.findings.plan =
        plan::next(target_of(now.world), judge::revisions_of(now.world), rules_of(now.world.spec));
    write(now);
    look_at_pods(now);
    push(now);
    set_gates(now);
  }
  SL_TRY(write_status(now));
  if (now.failure) return *now.failure;
  return std::optional(options_.poll_interval);
}

// Whether the cache still has the object as it was before our own last write of its status.
bool Reconciler::is_outdated(const Key& key, const Value& object) {
  const MutexLock lock(mutex_);
  const auto outdated = outdated_.find(key);
  return outdated != outdated_.end() && outdated->second == object::resource_version_of(object);
}

void Reconciler::forget(const Key& key) {
  applier_.forget(key);
  secrets_.forget(key);
  const MutexLock lock(mutex_);
  told_.erase(key);
  outdated_.erase(key);
}

Answer<Done> Reconciler::observe(Case& now) {
  const Key key{now.owner.name_space, now.owner.name};
  const auto specs = around_.caches.find(
      owned::config_maps_resource(), {key.name_space, desired::shared_name(now.owner, "specs")});
  if (specs != nullptr) now.kept = specs_of(*specs);
  note_images(now.kept, now.asked, options_.images, options_.version);
  now.found = SL_TRY(observer_.references(key.name_space, now.asked));
  now.own = SL_TRY(secrets_.ensure(now.owner, now.reference, now.asked.nats));
  now.digests = {.chat_template = agreement::digest_of(now.found.chat_template.value_or("")),
                 .identity_key = now.own.identity_digest};
  judge::World& world = now.world;
  world.pods = observer_.pods(key, world.uid);
  world.deployments = observer_.deployments(world.uid);
  world.scales = observer_.scales(world.uid);
  world.nats_ready = observer_.nats_ready(world.uid);
  world.routers = observer_.reports(world.pods, now.own.admin_token);
  return Done{};
}

void Reconciler::judge_spec(Case& now) {
  now.findings.spec = judge::why_not_accepted(now.asked, now.found, now.kept.images);
  if (!now.findings.spec.is_there()) now.kept.accepted = now.asked;
  now.world.spec = now.kept.accepted.value_or(now.asked);
  now.world.status.images = now.kept.images;
  now.world.status.operator_version = now.kept.version;
}

void Reconciler::settle(Case& now) {
  now.world.target = agreement::revision_of(agreement::agreement_of(now.world.spec, now.digests));
  settle_stacks(now);
  for (const crd::Pool& pool : now.world.spec.pools) {
    if (!pool.selector) continue;
    auto pods = observer_.selected(now.owner.name_space, pool);
    if (!pods.ok()) {
      now.failure = std::move(pods).error();
      continue;
    }
    now.world.pods.insert(now.world.pods.end(), pods->begin(), pods->end());
  }
}

desired::Scene Reconciler::scene_of(const Case& now, const judge::Stack& stack) const {
  desired::Scene scene;
  scene.owner = now.owner;
  scene.owner_reference = now.reference;
  scene.spec = stack.spec;
  scene.agreement = agreement::agreement_of(stack.spec, now.digests);
  scene.revision = stack.revision;
  scene.images = now.kept.images;
  return scene;
}

// The first failure is the one that is told.
void Reconciler::note(Case& now, const Answer<Done>& answer) {
  if (!answer.ok() && !now.failure) now.failure = answer.error();
}

void Reconciler::write(Case& now) {
  std::set<std::string> kept;
  put(now, specs_config_map(now.owner, now.reference, now.kept), kept);
  const desired::Scene target = scene_of(now, now.world.stacks.back());
  for (const crd::Pool& pool : now.world.spec.pools) {
    if (!pool.autoscaling) continue;
    note(now, scales_.make(now.world, target, pool));
    note(now, scales_.tell(now.world, now.owner, pool));
  }
  const desired::Surroundings around{.nats = now.own.nats,
                                     .has_pod_monitors = options_.has_pod_monitors};
  for (const Value& object : desired::shared_objects(target, around)) put(now, object, kept);
  for (const judge::Stack& stack : now.world.stacks) write_stack(now, stack, kept);
  if (now.failure) return;
  note(now, applier_.prune(now.world.uid, kept));
}

void Reconciler::write_stack(Case& now, const judge::Stack& stack, std::set<std::string>& kept) {
  const judge::World& world = now.world;
  const auto shares = plan::frontends_of(world.spec.frontend.replicas.value_or(kFrontends),
                                         target_of(world), judge::revisions_of(world));
  const auto share = shares.find(stack.revision);
  const auto replicas = now.findings.plan.replicas.find(stack.revision);
  desired::Sizes sizes;
  sizes.routers = world.spec.suspend ? 0 : stack.spec.router.replicas;
  sizes.frontends = world.spec.suspend || share == shares.end() ? 0 : share->second;
  if (replicas != now.findings.plan.replicas.end()) sizes.pools = replicas->second;
  if (is_leaving(world, stack, sizes.pools)) {
    // Frontends go before the last workers: one without a worker would refuse what still comes.
    sizes.frontends = 0;
    if (has_pods(world, desired::kFrontend, stack.revision)) sizes.pools = wanted_now(world, stack);
  }
  if (stack.spec.frontend.autoscaling && !world.spec.suspend && stack.revision == world.target) {
    sizes.frontends.reset();
  }
  std::vector<desired::ForeignPod> foreign;
  for (const judge::Pod& pod : world.pods) {
    if (pod.component.empty()) foreign.push_back({pod.pool, pod.name, pod.ip});
  }
  const auto workers = judge::workers_of(world, stack);
  const desired::Scene scene = scene_of(now, stack);
  for (const Value& object : desired::revision_objects(scene, sizes, workers, foreign)) {
    put(now, object, kept);
  }
}

void Reconciler::put(Case& now, const Value& desired, std::set<std::string>& kept) {
  const std::string name = std::string(desired["kind"].text()) + "/" + object::key_of(desired).name;
  kept.insert(name);
  if (now.failure && ends_everything(*now.failure)) return;
  const auto applied = applier_.apply(desired);
  if (applied.ok() && *applied && desired["kind"].text() == "Deployment") {
    now.has_changed_pods = true;
  }
  if (applied.ok() || now.failure) return;
  now.failure = applied.error();
  now.findings.writing = {.reason = "WriteFailed",
                          .message = name + ": " + applied.error().message};
}

// Workers that are all there may be of an older template, and so may frontends and routers.
void Reconciler::look_at_pods(Case& now) {
  plan::Plan& plan = now.findings.plan;
  if (plan.phase != plan::Phase::Completed) return;
  std::string rolling = judge::rolling_of(now.world);
  // What was just written is not in what was observed.
  if (rolling.empty() && now.has_changed_pods) rolling = "a Deployment has just been changed";
  if (rolling.empty()) return;
  plan.phase = plan::Phase::Moving;
  plan.message = std::move(rolling);
}

void Reconciler::push(Case& now) {
  for (const judge::ListPush& one : judge::lists_to_push(now.world)) {
    for (const judge::Pod& pod : now.world.pods) {
      if (pod.name != one.pod) continue;
      const auto pushed =
          around_.routers.put({pod.ip, now.own.admin_token}, "/v1/workers", one.body);
      if (pushed.ok()) continue;
      log(LogLevel::Warn, "a router did not take its list of workers",
          {{"router", pod.name}, {"problem", pushed.error().message}});
    }
  }
  for (const judge::Pod& pod : now.world.pods) {
    if (pod.is_ending || pod.is_over || pod.ip.empty()) continue;
    if (pod.component == desired::kFrontend) {
      const auto held = around_.routers.settings({pod.ip, now.own.admin_token});
      if (held.ok()) push_settings(now, pod, *held);
    }
    for (const judge::RouterReport& router : now.world.routers) {
      if (router.pod == pod.name && router.problem.empty())
        push_settings(now, pod, router.settings);
    }
  }
  const MutexLock lock(mutex_);
  std::erase_if(told_[{now.owner.name_space, now.owner.name}], [&](const auto& told) {
    return std::none_of(now.world.pods.begin(), now.world.pods.end(),
                        [&](const judge::Pod& pod) { return pod.uid == told.first; });
  });
}

void Reconciler::push_settings(Case& now, const judge::Pod& pod,
                               const std::map<std::string, std::string>& held) {
  const auto stack =
      std::find_if(now.world.stacks.begin(), now.world.stacks.end(),
                   [&](const judge::Stack& one) { return one.revision == pod.revision; });
  if (stack == now.world.stacks.end()) return;
  Value body = Value::object();
  for (const auto& [name, value] : desired::live_settings(scene_of(now, *stack))) {
    body.set({"settings", name}, value);
  }
  const std::string wanted = body.to_text();
  {
    const MutexLock lock(mutex_);
    Told& told = told_[{now.owner.name_space, now.owner.name}][pod.uid];
    if (told.settings == wanted && told.read_back.empty()) told.read_back = held;
    if (told.settings == wanted && told.read_back == held) return;
  }
  const auto pushed = around_.routers.put({pod.ip, now.own.admin_token}, "/v1/settings", body);
  if (!pushed.ok()) {
    log(LogLevel::Warn, "a process did not take its settings",
        {{"pod", pod.name}, {"problem", pushed.error().message}});
    return;
  }
  const MutexLock lock(mutex_);
  told_[{now.owner.name_space, now.owner.name}][pod.uid] = {.settings = wanted, .read_back = {}};
}

void Reconciler::set_gates(Case& now) {
  const std::string when = object::to_timestamp(around_.clock.wall());
  const auto gates = judge::gates_to_set(now.world);
  for (const judge::Pod& pod : now.world.pods) {
    const auto gate = gates.find(pod.name);
    if (gate == gates.end()) continue;
    Value identity = Value::object();
    identity.set({"metadata", "name"}, pod.name);
    identity.set({"metadata", "namespace"}, now.owner.name_space);
    identity.set({"metadata", "uid"}, pod.uid);
    const auto set = around_.api.apply(
        owned::pods_resource(), gate_status(identity, gate->second, when), owned::as_status());
    if (set.ok() || failed(set, Reason::NotFound) || now.failure) continue;
    now.failure = set.error();
  }
}

Answer<Done> Reconciler::write_status(Case& now) {
  const WallTime wall = around_.clock.wall();
  const crd::RolloutStatus rollout = judge::rollout_of(now.world, now.findings.plan, wall);
  now.findings.is_stuck = rollout.phase == crd::RolloutPhase::Stuck;
  const crd::Status status = judge::status_of(now.world, now.findings, wall);
  if (status == now.before) return Done{};
  Value patch = Value::object();
  object::name_kind(patch, owned::routers_resource());
  patch.set({"metadata", "name"}, now.owner.name);
  patch.set({"metadata", "namespace"}, now.owner.name_space);
  patch.set({"metadata", "uid"}, now.world.uid);
  auto parsed = Value::parse(crd::status_json(status));
  SL_CHECK(parsed.ok());
  patch.member("status") = std::move(*parsed);
  const Value written =
      SL_TRY(around_.api.apply(owned::routers_resource(), patch, owned::as_status()));
  if (object::resource_version_of(written) != object::resource_version_of(now.object)) {
    const MutexLock lock(mutex_);
    outdated_[{now.owner.name_space, now.owner.name}] = object::resource_version_of(now.object);
  }
  tell(now, status);
  return Done{};
}

// Each verdict that changed is an event: read one after the other, they are the object's story. Of
// those that an object begins with, that it was accepted is enough.
void Reconciler::tell(const Case& now, const crd::Status& status) {
  const auto& before = now.before.conditions;
  for (const crd::Condition& condition : status.conditions) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const crd::Condition& one) {
      return one.type == condition.type;
    });
    const bool is_new = same == before.end();
    const bool is_changed =
        !is_new && (same->status != condition.status ||
                    (same->reason != condition.reason && condition.type != judge::kReady));
    if (!is_changed && !(is_new && condition.type == judge::kAccepted)) continue;
    const bool is_true = condition.status == crd::ConditionStatus::True;
    const bool is_bad = condition.type == judge::kDegraded      ? is_true
                        : condition.type == judge::kProgressing ? false
                                                                : !is_true;
    around_.events.record({.regarding = now.object,
                           .is_warning = is_bad && condition.reason != "Updating",
                           .reason = condition.reason,
                           .action = "Reconcile",
                           .note = condition.type + ": " + condition.message});
  }
}

}  // namespace sightline::reconcile
