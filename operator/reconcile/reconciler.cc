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
#include "operator/desired/program_settings.h"
#include "operator/desired/secrets.h"
#include "operator/judge/counts.h"
#include "operator/judge/object_status.h"
#include "operator/judge/pool_workers.h"
#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"
#include "operator/owned/kinds.h"
#include "operator/plan/plan.h"
#include "operator/reconcile/story.h"
#include "operator/reconcile/troubles.h"

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

// Time for the last write to arrive on the watch.
constexpr std::chrono::milliseconds kCacheWait{50};
constexpr std::chrono::seconds kTerminatingWait{30};
// The limits of one reconciliation. An object with slow writes or routers must not delay the next
// objects. The rest waits for the next one.
constexpr std::chrono::seconds kWriteMax{30};
constexpr std::chrono::seconds kPushMax{10};
// A failure that may pass is reported on the object after it has lasted for this long.
constexpr std::chrono::seconds kPassingMax{10};

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
  if (spec.ok()) {
    now.asked = std::move(*spec);
  } else {
    // An older operator may meet words of a newer CRD. It must not guess what they mean.
    now.unread = {.reason = "SpecNotUnderstood",
                  .message = spec.error().message +
                             ". The installed kinds are newer than this operator: upgrade the "
                             "operator, or remove the value"};
  }
  auto status = crd::read_status(document->root());
  if (status.ok()) now.before = std::move(*status);
  now.cluster.status = now.before;
  now.cluster.name_space = key.name_space;
  now.cluster.name = key.name;
  now.cluster.uid = object::uid_of(object);
  now.cluster.generation = object.at({"metadata", "generation"}).integer().value_or(0);
  return now;
}

std::string name_of(const Value& object) {
  return std::string(object["kind"].text()) + "/" + object::key_of(object).name;
}

// Whether the revision was made from the present content of the Secrets and ConfigMaps.
bool is_made_of(const desired::RenderInput& input) {
  return agreement::revision_of(input.agreement) == input.revision;
}

}  // namespace

Reconciler::Reconciler(Options options, const Deps& deps)
    : options_(std::move(options)),
      deps_(deps),
      observer_(deps.api, deps.caches, deps.routers, deps.clock),
      applier_(deps.api, deps.caches),
      scales_(deps.api, deps.caches),
      secrets_(deps.api, deps.caches, deps.clock),
      pushes_(deps.routers, deps.clock) {}

Answer<std::optional<Duration>> Reconciler::reconcile(const Key& key) {
  auto answer = look_after(key);
  // All objects in this namespace are being deleted, so nothing is wrong.
  if (!answer.ok() && has_cause(answer.error(), client::kNamespaceTerminating)) {
    return std::optional<Duration>(kTerminatingWait);
  }
  return answer;
}

Answer<std::optional<Duration>> Reconciler::look_after(const Key& key) {
  const auto object = deps_.caches.router(key);
  if (object == nullptr || object::is_being_deleted(*object)) {
    forget(key);
    return std::optional<Duration>();
  }
  // The cache has not seen our last status yet: wait for it.
  if (memory_.is_outdated(key, *object)) return std::optional<Duration>(kCacheWait);
  Case now = SL_TRY(case_of(*object));
  now.write_until = deps_.clock.now() + kWriteMax;
  // Without a complete observation the plan could delete objects that are only unseen.
  const auto observed = observe(now);
  if (!observed.ok()) return unobserved(now, observed.error());
  judge_spec(now);
  // Without an accepted spec there is nothing to write, but the status says why.
  if (now.kept.accepted) {
    const auto settled = settle(now);
    if (!settled.ok()) return unobserved(now, settled.error());
    now.findings.plan = plan::next(target_of(now.cluster), judge::revisions_of(now.cluster),
                                   rules_of(now.cluster.spec));
    write(now);
    look_at_pods(now);
    pushes_.send(now.cluster, now.own.admin_token, deps_.clock.now() + kPushMax);
    write_pods(now);
  }
  SL_TRY(write_status(now));
  memory_.note_success(key);
  if (now.failure) return *now.failure;
  return std::optional(options_.poll_interval);
}

void Reconciler::forget(const Key& key) {
  if (options_.on_verdict) options_.on_verdict(key, nullptr);
  applier_.forget(key);
  secrets_.forget(key);
  pushes_.forget(key);
  memory_.forget(key);
}

KeptSpecs Reconciler::kept_specs(const Case& now) {
  const Key key{now.owner.name_space, now.owner.name};
  // Memory first, because a user may have edited the ConfigMap since.
  if (auto noted = memory_.specs(key, now.cluster.uid)) return std::move(*noted);
  const auto specs = deps_.caches.find(owned::config_maps_resource(),
                                       {key.name_space, desired::shared_name(now.owner, "specs")});
  return specs == nullptr ? KeptSpecs{} : specs_of(*specs);
}

Answer<Done> Reconciler::observe(Case& now) {
  const Key key{now.owner.name_space, now.owner.name};
  now.kept = kept_specs(now);
  // The last accepted spec continues to run.
  if (now.unread.is_there() && now.kept.accepted) now.asked = *now.kept.accepted;
  note_images(now.kept, now.asked, options_.images, options_.version);
  now.found = SL_TRY(observer_.references(key.name_space, now.asked));
  now.own = SL_TRY(secrets_.ensure(now.owner, now.reference, now.asked.nats));
  judge::ClusterState& cluster = now.cluster;
  cluster.pods = observer_.pods(key, cluster.uid);
  cluster.deployments = observer_.deployments(key, cluster.uid);
  cluster.scales = observer_.scales(cluster.uid);
  cluster.nats_ready = observer_.nats_ready(key, cluster.uid);
  cluster.routers = observer_.reports(cluster.pods, now.own.admin_token);
  return Done{};
}

void Reconciler::judge_spec(Case& now) {
  now.findings.spec = now.unread.is_there()
                          ? now.unread
                          : judge::why_not_accepted(now.asked, now.found, now.kept.images);
  if (!now.findings.spec.is_there()) {
    now.kept.accepted = now.asked;
    now.kept.template_digest = agreement::digest_of(now.found.chat_template.value_or(""));
  }
  now.digests = {.chat_template = now.kept.template_digest,
                 .identity_key = now.own.identity_digest};
  now.cluster.spec = now.kept.accepted.value_or(now.asked);
  now.cluster.status.images = now.kept.images;
  now.cluster.status.operator_version = now.kept.version;
}

Answer<Done> Reconciler::settle(Case& now) {
  now.cluster.target =
      agreement::revision_of(agreement::agreement_of(now.cluster.spec, now.digests));
  settle_stacks(now);
  // Without these pods the routers' lists would lose these workers.
  std::vector<judge::Pod> selected;
  for (const crd::Pool* pool : selector_pools(now.cluster)) {
    const auto pods = SL_TRY(observer_.selected(now.owner.name_space, *pool));
    selected.insert(selected.end(), pods.begin(), pods.end());
  }
  add_selected(now.cluster, std::move(selected));
  now.findings.seeing = unseen_of(now);
  return Done{};
}

desired::RenderInput Reconciler::render_input_of(const Case& now, const judge::Stack& stack) const {
  desired::RenderInput input;
  input.owner = now.owner;
  input.owner_reference = now.reference;
  input.spec = stack.spec;
  input.agreement = agreement::agreement_of(stack.spec, now.digests);
  input.revision = stack.revision;
  input.images = now.kept.images;
  input.is_ipv6 = options_.is_ipv6;
  if (stack.spec.model.chat_template) input.chat_template = template_of(now, input);
  return input;
}

// From the revision's own ConfigMap or, before that exists, from the user's.
std::optional<std::string> Reconciler::template_of(const Case& now,
                                                   const desired::RenderInput& input) const {
  const auto kept = deps_.caches.find(owned::config_maps_resource(),
                                      {now.owner.name_space, desired::template_config_name(input)});
  if (kept != nullptr) return std::string(kept->at({"data", desired::kTemplateFile}).text());
  const auto& found = now.found.chat_template;
  // The user may have changed the ConfigMap since the revision was made.
  const bool is_its =
      found && agreement::digest_of(*found) == now.digests.chat_template && is_made_of(input);
  return is_its ? found : std::nullopt;
}

// Only the first failure is reported.
void Reconciler::note(Case& now, const std::string& name, const Answer<Done>& answer) {
  if (answer.ok() || now.failure) return;
  now.failure = answer.error();
  now.findings.writing = trouble_of(answer.error(), "WriteFailed", name);
}

void Reconciler::write(Case& now) {
  std::set<std::string> kept;
  put(now, specs_config_map(now.owner, now.reference, now.kept), kept);
  // A revision whose spec is not stored could not be managed once it is an older one.
  if (now.failure) return;
  memory_.note_specs({now.owner.name_space, now.owner.name}, now.cluster.uid, now.kept);
  const desired::RenderInput target = render_input_of(now, now.cluster.stacks.back());
  for (const crd::Pool& pool : now.cluster.spec.pools) {
    if (!pool.autoscaling) continue;
    const std::string name = "MultimodalRouterPool/" + pool.name;
    note(now, name, scales_.make(now.cluster, target, pool));
    note(now, name, scales_.tell(now.cluster, now.owner, pool));
  }
  const desired::ClusterFacts deps{
      .nats = now.own.nats, .has_pod_monitors = deps_.caches.knows(owned::pod_monitors_resource())};
  for (const Value& object : desired::shared_objects(target, deps)) put(now, object, kept);
  for (const judge::Stack& stack : now.cluster.stacks) write_stack(now, stack, kept);
  // A failed write may leave a replacement missing, so nothing is deleted.
  if (now.failure) return;
  owned::Applier::PruneExceptions all{.names = std::move(kept), .revisions = {}, .leaving = {}};
  if (is_replaced_in_full(now)) {
    all.leaving = unknown_with_frontends(now.cluster);
  } else {
    all.revisions = unknown_revisions(now.cluster);
  }
  note(now, "deletion", applier_.prune(now.cluster.uid, all));
}

void Reconciler::write_stack(Case& now, const judge::Stack& stack, std::set<std::string>& kept) {
  const judge::ClusterState& cluster = now.cluster;
  const auto foreign = judge::foreign_pods(cluster);
  const auto workers = judge::workers_of(cluster, stack);
  const desired::RenderInput input = render_input_of(now, stack);
  const auto objects = desired::revision_objects(input, sizes_of(now, stack), workers, foreign);
  // The first object is the ConfigMap of the revision. The identity Secret belongs to it.
  put(now, objects.front(), kept);
  // Only while the Secrets and ConfigMaps still have the content of the revision.
  if (is_made_of(input) && !is_over(now)) {
    note(now, "Secret/" + desired::identity_file(input).secret, secrets_.ensure_identity(input));
  }
  for (const Value& object : std::span(objects).subspan(1)) {
    if (is_left_as_it_is(now, input, object)) {
      kept.insert(name_of(object));
    } else {
      put(now, object, kept);
    }
  }
}

// A router that starts reads its workers there. So the list is not emptied only because no worker
// is found.
bool Reconciler::is_left_as_it_is(const Case& now, const desired::RenderInput& input,
                                  const Value& desired) const {
  const Key key = object::key_of(desired);
  if (key.name != desired::live_config_name(input)) return false;
  const auto stack =
      std::find_if(now.cluster.stacks.begin(), now.cluster.stacks.end(),
                   [&](const judge::Stack& one) { return one.revision == input.revision; });
  return judge::is_list_unknown(now.cluster, *stack) &&
         deps_.caches.find(owned::config_maps_resource(), key) != nullptr;
}

void Reconciler::put(Case& now, const Value& desired, std::set<std::string>& kept) {
  const std::string name = name_of(desired);
  // Before the check: an object left for later must not be deleted either.
  kept.insert(name);
  if (is_over(now)) return;
  const auto applied = applier_.apply(desired);
  if (applied.ok()) {
    now.has_changed_pods |= *applied && desired["kind"].text() == "Deployment";
  } else {
    note(now, name, applied.error());
  }
}

// All workers, frontends and routers may be there, but with an older template.
void Reconciler::look_at_pods(Case& now) {
  plan::Plan& plan = now.findings.plan;
  if (plan.phase != plan::Phase::Completed) return;
  std::string rolling = judge::rolling_of(now.cluster);
  if (rolling.empty() && now.has_changed_pods) rolling = "a Deployment has just been changed";
  if (rolling.empty()) return;
  plan.phase = plan::Phase::Moving;
  plan.message = std::move(rolling);
}

// Whether this reconciliation writes nothing more.
bool Reconciler::is_over(Case& now) const {
  if (now.failure && ends_everything(*now.failure)) return true;
  if (deps_.clock.now() < now.write_until) return false;
  Failure slow;
  slow.reason = Reason::Deadline;
  slow.message = "the API server is slow: the next reconciliation writes the rest";
  note(now, "writes", slow);
  return true;
}

void Reconciler::write_pods(Case& now) {
  const std::string when = object::to_timestamp(deps_.clock.wall());
  for (const Value& patch : pod_patches(now.cluster, when)) {
    if (is_over(now)) return;
    const auto set = deps_.api.apply(owned::pods_resource(), patch, owned::as_status());
    if (set.ok() || failed(set, Reason::NotFound)) continue;
    note(now, "Pod/" + object::key_of(patch).name, set.error());
  }
}

Answer<Done> Reconciler::write_status(Case& now) {
  const WallTime wall = deps_.clock.wall();
  const crd::RolloutStatus rollout = judge::rollout_of(now.cluster, now.findings.plan, wall);
  now.findings.is_stuck = rollout.phase == crd::RolloutPhase::Stuck;
  return put_status(now, judge::status_of(now.cluster, now.findings, wall));
}

// Whether the object's status reports the failure. What a person must repair is reported
// immediately, other failures if they last. An empty status reports any failure.
bool Reconciler::note_failure(const Case& now, const Failure& failure) {
  const Key key{now.owner.name_space, now.owner.name};
  const Duration lasting = memory_.note_failure(key, deps_.clock.now());
  if (ends_everything(failure)) return false;
  return is_for_people(failure) || now.before.conditions.empty() || lasting >= kPassingMax;
}

Failure Reconciler::unobserved(Case& now, const Failure& failure) {
  if (!note_failure(now, failure)) return failure;
  crd::Status status = now.before;
  status.conditions =
      judge::with_trouble(now.before.conditions, trouble_of(failure, "ReadFailed", {}),
                          now.cluster.generation, deps_.clock.wall());
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
  // The UID makes the API server refuse the status of another object of the same name.
  patch.set({"metadata", "uid"}, now.cluster.uid);
  auto parsed = Value::parse(crd::status_json(status));
  SL_CHECK(parsed.ok());
  patch.member("status") = std::move(*parsed);
  Value written = SL_TRY(deps_.api.apply(owned::routers_resource(), patch, owned::as_status()));
  if (written["status"] != patch["status"]) {
    // Another writer has changed the status too, and an apply keeps the fields of others.
    Value rest = Value::object();
    rest.set({"metadata", "resourceVersion"}, written.at({"metadata", "resourceVersion"}));
    rest.member("status") = owned::replacement_of(patch["status"], written["status"]);
    written = SL_TRY(deps_.api.merge_patch(owned::routers_resource(), key, rest, "status"));
  }
  memory_.note_status(key, now.object, written);
  const auto happenings = happenings_of(now.object, now.before.conditions, status.conditions);
  for (const recorder::ObjectEvent& one : happenings) deps_.events.record(one);
  return Done{};
}

}  // namespace sightline::reconcile
