// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/reconciler.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "common/base/json.h"

#include "operator/crd/read.h"
#include "operator/crd/write.h"
#include "operator/desired/objects.h"
#include "operator/desired/secrets.h"
#include "operator/desired/settings.h"
#include "operator/judge/counts.h"
#include "operator/judge/status.h"
#include "operator/judge/workers.h"
#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"
#include "operator/owned/kinds.h"
#include "operator/plan/plan.h"
#include "operator/reconcile/story.h"

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
constexpr std::chrono::seconds kTerminatingWait{30};
// Of one reconciliation, so that an object whose writes or routers are slow does not hold those up
// that come after it: what is left is done the next time.
constexpr std::chrono::seconds kWriteMax{30};
constexpr std::chrono::seconds kPushMax{10};

// Nothing that follows would be written either.
bool ends_everything(const Failure& failure) {
  return failure.reason == Reason::NotLeading || failure.reason == Reason::Cancelled ||
         failure.reason == Reason::Unauthorized ||
         has_cause(failure, client::kNamespaceTerminating);
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

// Whether the revision was made of what the Secrets and ConfigMaps hold now.
bool is_made_of(const desired::Scene& scene) {
  return agreement::revision_of(scene.agreement) == scene.revision;
}

// Pools of somebody else's pods of all revisions, each once: the newest revision's, where they
// differ.
std::vector<const crd::Pool*> selector_pools(const judge::World& world) {
  std::map<std::string_view, const crd::Pool*> by_name;
  for (auto stack = world.stacks.rbegin(); stack != world.stacks.rend(); ++stack) {
    for (const crd::Pool& pool : stack->spec.pools) by_name.try_emplace(pool.name, &pool);
  }
  std::vector<const crd::Pool*> pools;
  for (const auto& [name, pool] : by_name) {
    if (pool->selector) pools.push_back(pool);
  }
  return pools;
}

}  // namespace

Reconciler::Reconciler(Options options, const Around& around)
    : options_(std::move(options)),
      around_(around),
      observer_(around.api, around.caches, around.routers, around.clock),
      applier_(around.api, around.caches),
      scales_(around.api, around.caches),
      secrets_(around.api, around.clock),
      pushes_(around.routers, around.clock) {}

Answer<std::optional<Duration>> Reconciler::reconcile(const Key& key) {
  auto answer = look_after(key);
  // All that is there goes, and the object with it: nothing is wrong.
  if (!answer.ok() && has_cause(answer.error(), client::kNamespaceTerminating)) {
    return std::optional<Duration>(kTerminatingWait);
  }
  return answer;
}

Answer<std::optional<Duration>> Reconciler::look_after(const Key& key) {
  const auto object = around_.caches.router(key);
  if (object == nullptr || object::is_being_deleted(*object)) {
    forget(key);
    return std::optional<Duration>();
  }
  if (is_outdated(key, *object)) return std::optional<Duration>(kCacheWait);
  Case now = SL_TRY(case_of(*object));
  now.write_until = around_.clock.now() + kWriteMax;
  const auto observed = observe(now);
  if (!observed.ok()) return unobserved(now, observed.error());
  judge_spec(now);
  if (now.kept.accepted) {
    const auto settled = settle(now);
    if (!settled.ok()) return unobserved(now, settled.error());
    now.findings.plan =
        plan::next(target_of(now.world), judge::revisions_of(now.world), rules_of(now.world.spec));
    write(now);
    look_at_pods(now);
    pushes_.send(now.world, now.own.admin_token, around_.clock.now() + kPushMax);
    write_pods(now);
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
  if (options_.on_verdict) options_.on_verdict(key, nullptr);
  applier_.forget(key);
  secrets_.forget(key);
  pushes_.forget(key);
  const MutexLock lock(mutex_);
  outdated_.erase(key);
  noted_.erase(key);
}

KeptSpecs Reconciler::kept_specs(const Case& now) {
  const Key key{now.owner.name_space, now.owner.name};
  const auto specs = around_.caches.find(
      owned::config_maps_resource(), {key.name_space, desired::shared_name(now.owner, "specs")});
  if (specs != nullptr) return specs_of(*specs);
  const MutexLock lock(mutex_);
  const auto noted = noted_.find(key);
  const bool is_its = noted != noted_.end() && noted->second.first == now.world.uid;
  return is_its ? noted->second.second : KeptSpecs{};
}

Answer<Done> Reconciler::observe(Case& now) {
  const Key key{now.owner.name_space, now.owner.name};
  now.kept = kept_specs(now);
  note_images(now.kept, now.asked, options_.images, options_.version);
  now.found = SL_TRY(observer_.references(key.name_space, now.asked));
  now.own = SL_TRY(secrets_.ensure(now.owner, now.reference, now.asked.nats));
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
  if (!now.findings.spec.is_there()) {
    now.kept.accepted = now.asked;
    now.kept.template_digest = agreement::digest_of(now.found.chat_template.value_or(""));
  }
  now.digests = {.chat_template = now.kept.template_digest,
                 .identity_key = now.own.identity_digest};
  now.world.spec = now.kept.accepted.value_or(now.asked);
  now.world.status.images = now.kept.images;
  now.world.status.operator_version = now.kept.version;
}

Answer<Done> Reconciler::settle(Case& now) {
  now.world.target = agreement::revision_of(agreement::agreement_of(now.world.spec, now.digests));
  settle_stacks(now);
  // Without them routers would be told that those workers are gone.
  for (const crd::Pool* pool : selector_pools(now.world)) {
    const auto pods = SL_TRY(observer_.selected(now.owner.name_space, *pool));
    now.world.pods.insert(now.world.pods.end(), pods.begin(), pods.end());
  }
  std::stable_sort(
      now.world.pods.begin(), now.world.pods.end(),
      [](const judge::Pod& left, const judge::Pod& right) { return left.name < right.name; });
  return Done{};
}

desired::Scene Reconciler::scene_of(const Case& now, const judge::Stack& stack) const {
  desired::Scene scene;
  scene.owner = now.owner;
  scene.owner_reference = now.reference;
  scene.spec = stack.spec;
  scene.agreement = agreement::agreement_of(stack.spec, now.digests);
  scene.revision = stack.revision;
  scene.images = now.kept.images;
  if (stack.spec.model.chat_template) scene.chat_template = template_of(now, scene);
  return scene;
}

// As it is kept with the revision; before that, as the user's ConfigMap has it.
std::optional<std::string> Reconciler::template_of(const Case& now,
                                                   const desired::Scene& scene) const {
  const auto kept = around_.caches.find(
      owned::config_maps_resource(), {now.owner.name_space, desired::template_config_name(scene)});
  if (kept != nullptr) return std::string(kept->at({"data", desired::kTemplateFile}).text());
  const auto& found = now.found.chat_template;
  const bool is_its =
      found && agreement::digest_of(*found) == now.digests.chat_template && is_made_of(scene);
  return is_its ? found : std::nullopt;
}

// The first failure is the one that is told.
void Reconciler::note(Case& now, const std::string& name, const Answer<Done>& answer) {
  if (answer.ok() || now.failure) return;
  now.failure = answer.error();
  now.findings.writing = {.reason = "WriteFailed", .message = name + ": " + answer.error().message};
}

void Reconciler::write(Case& now) {
  std::set<std::string> kept;
  put(now, specs_config_map(now.owner, now.reference, now.kept), kept);
  // What is not kept cannot be looked after once it is an older revision.
  if (now.failure) return;
  {
    const MutexLock lock(mutex_);
    noted_[{now.owner.name_space, now.owner.name}] = {now.world.uid, now.kept};
  }
  const desired::Scene target = scene_of(now, now.world.stacks.back());
  for (const crd::Pool& pool : now.world.spec.pools) {
    if (!pool.autoscaling) continue;
    const std::string name = "MultimodalRouterPool/" + pool.name;
    note(now, name, scales_.make(now.world, target, pool));
    note(now, name, scales_.tell(now.world, now.owner, pool));
  }
  const desired::Surroundings around{.nats = now.own.nats,
                                     .has_pod_monitors = options_.has_pod_monitors};
  for (const Value& object : desired::shared_objects(target, around)) put(now, object, kept);
  for (const judge::Stack& stack : now.world.stacks) write_stack(now, stack, kept);
  if (now.failure) return;
  note(now, "deletion", applier_.prune(now.world.uid, kept));
}

void Reconciler::write_stack(Case& now, const judge::Stack& stack, std::set<std::string>& kept) {
  const judge::World& world = now.world;
  const auto foreign = judge::foreign_pods(world);
  const auto workers = judge::workers_of(world, stack);
  const desired::Scene scene = scene_of(now, stack);
  const auto objects = desired::revision_objects(scene, sizes_of(now, stack), workers, foreign);
  put(now, objects.front(), kept);
  if (is_made_of(scene) && !is_over(now)) {
    note(now, "Secret/" + desired::identity_file(scene).secret, secrets_.ensure_identity(scene));
  }
  for (const Value& object : std::span(objects).subspan(1)) put(now, object, kept);
}

void Reconciler::put(Case& now, const Value& desired, std::set<std::string>& kept) {
  const std::string name = std::string(desired["kind"].text()) + "/" + object::key_of(desired).name;
  kept.insert(name);
  if (is_over(now)) return;
  const auto applied = applier_.apply(desired);
  if (applied.ok()) {
    now.has_changed_pods |= *applied && desired["kind"].text() == "Deployment";
  } else {
    note(now, name, applied.error());
  }
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

// Whether nothing more is written this time.
bool Reconciler::is_over(Case& now) const {
  if (now.failure && ends_everything(*now.failure)) return true;
  if (around_.clock.now() < now.write_until) return false;
  Failure slow;
  slow.reason = Reason::Deadline;
  slow.message = "the API server is slow; what is left is written the next time";
  note(now, "writes", slow);
  return true;
}

void Reconciler::write_pods(Case& now) {
  const std::string when = object::to_timestamp(around_.clock.wall());
  for (const Value& patch : pod_patches(now.world, when)) {
    if (is_over(now)) return;
    const auto set = around_.api.apply(owned::pods_resource(), patch, owned::as_status());
    if (set.ok() || failed(set, Reason::NotFound)) continue;
    note(now, "Pod/" + object::key_of(patch).name, set.error());
  }
}

Answer<Done> Reconciler::write_status(Case& now) {
  const WallTime wall = around_.clock.wall();
  const crd::RolloutStatus rollout = judge::rollout_of(now.world, now.findings.plan, wall);
  now.findings.is_stuck = rollout.phase == crd::RolloutPhase::Stuck;
  return put_status(now, judge::status_of(now.world, now.findings, wall));
}

// Too little is known for a verdict. What a person has to mend is told; the rest passes.
Failure Reconciler::unobserved(Case& now, const Failure& failure) {
  const bool is_for_people =
      (failure.reason == Reason::Invalid || failure.reason == Reason::Forbidden) &&
      !has_cause(failure, client::kNamespaceTerminating);
  if (!is_for_people) return failure;
  crd::Status status = now.before;
  status.conditions = judge::with_trouble(now.before.conditions, {"ReadFailed", failure.message},
                                          now.world.generation, around_.clock.wall());
  static_cast<void>(put_status(now, status));
  return failure;
}

Answer<Done> Reconciler::put_status(const Case& now, const crd::Status& status) {
  const Key key{now.owner.name_space, now.owner.name};
  if (options_.on_verdict) options_.on_verdict(key, &status);
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
    outdated_[key] = object::resource_version_of(now.object);
  }
  const auto happenings = happenings_of(now.object, now.before.conditions, status.conditions);
  for (const recorder::Happening& one : happenings) around_.events.record(one);
  return Done{};
}

}  // namespace sightline::reconcile
