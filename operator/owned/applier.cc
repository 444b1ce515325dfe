// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/applier.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"

namespace sightline::owned {

using client::Answer;
using client::Failure;
using client::Reason;
using object::Key;
using object::Value;

namespace {

// An admission policy may change labels. Without this label the watch never shows the object again.
bool is_watched(const Value& desired, const Value& answer) {
  return object::label_of(answer, desired::kRouterLabel) ==
         object::label_of(desired, desired::kRouterLabel);
}

Failure relabelled(const Value& desired) {
  Failure made;
  made.reason = Reason::Forbidden;
  made.message = "an admission policy has changed its label " + std::string(desired::kRouterLabel) +
                 "=" + std::string(object::label_of(desired, desired::kRouterLabel)) +
                 ". Exclude objects with the label " + std::string(desired::kManagerLabel) + "=" +
                 std::string(desired::kManager) + " from the policy";
  return made;
}

// The generation counts changes of the spec. Kinds without it give null.
const Value& generation_of(const Value& object) { return object.at({"metadata", "generation"}); }

bool leaves_replicas(const Value& desired, const Value& live) {
  return desired["kind"].text() == "Deployment" && !desired["spec"].contains("replicas") &&
         live["spec"].contains("replicas");
}

}  // namespace

client::ApplyOptions as_status() {
  return {.manager = std::string(kFieldManager), .is_forced = true, .subresource = "status"};
}

bool is_foreign(const Value& desired, const Value& live) {
  const std::string_view controller = object::controller_uid_of(live);
  // Without a controller our label decides: the object was ours before its owner reference was
  // removed.
  if (controller.empty()) return !is_watched(desired, live);
  return controller != object::controller_uid_of(desired);
}

Failure name_taken(const Value& desired, const Value& live) {
  std::string owner = "another owner";
  for (const Value& one : live.at({"metadata", "ownerReferences"}).items()) {
    if (!one["controller"].boolean().value_or(false)) continue;
    owner = std::string(one["kind"].text()) + " " + std::string(one["name"].text());
  }
  Failure made;
  made.reason = Reason::Forbidden;
  made.message = std::string(desired["kind"].text()) + " " + object::key_of(desired).name +
                 " already exists and belongs to " + owner + ". Rename or delete one of them";
  made.causes.push_back({std::string(client::kNameTaken), {}, {}});
  return made;
}

Value replacement_of(const Value& wanted, const Value& live) {
  if (!wanted.is_object() || !live.is_object()) return wanted;
  Value patch = Value::object();
  for (const auto& [name, value] : live.members()) {
    // null removes a member in a merge patch.
    if (!wanted.contains(name)) patch.member(name) = Value();
  }
  for (const auto& [name, value] : wanted.members()) {
    if (value != live[name]) patch.member(name) = replacement_of(value, live[name]);
  }
  return patch;
}

Value projection_of(const Value& desired, const Value& live) {
  if (desired.is_object() && live.is_object()) {
    Value projected = Value::object();
    for (const auto& [name, value] : desired.members()) {
      projected.member(name) = projection_of(value, live[name]);
    }
    return projected;
  }
  // Elements of lists of different lengths cannot be matched, so the whole list counts.
  if (!desired.is_array() || !live.is_array() || desired.size() != live.size()) return live;
  Value projected = Value::array();
  for (std::size_t i = 0; i < desired.size(); ++i) {
    projected.append(projection_of(desired.items()[i], live.items()[i]));
  }
  return projected;
}

std::string first_difference(const Value& left, const Value& right) {
  if (left == right) return {};
  if (left.is_object() && right.is_object()) {
    for (const auto& [name, value] : left.members()) {
      if (value != right[name]) return "/" + name + first_difference(value, right[name]);
    }
  }
  if (left.is_array() && right.is_array() && left.size() == right.size()) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::string below = first_difference(left.items()[i], right.items()[i]);
      if (!below.empty()) return "/" + std::to_string(i) + below;
      if (left.items()[i] != right.items()[i]) return "/" + std::to_string(i);
    }
  }
  return {};
}

bool Applier::is_as_written(const Name& name, const Value& desired, const Value& live) const {
  const MutexLock lock(mutex_);
  const auto written = written_.find(name);
  // After a start nothing is known, so everything is written once.
  if (written == written_.end() || written->second.desired != desired) return false;
  const Value now = projection_of(desired, live);
  if (written->second.after == now) return true;
  // The watch has not delivered the last write yet.
  if (written->second.before == object::resource_version_of(live)) return true;
  log(LogLevel::Info, "an object has changed since the last write: writing it again",
      {{"kind", name.first},
       {"object", object::text_of(name.second)},
       {"at", first_difference(written->second.after, now)}});
  return false;
}

Answer<Done> Applier::hand_over(const object::Resource& resource, const Value& desired) {
  auto found = api_.get(resource, object::key_of(desired));
  if (failed(found, Reason::NotFound)) return Done{};
  const Value live = SL_TRY(std::move(found));
  const std::int64_t replicas = live.at({"spec", "replicas"}).integer().value_or(0);
  // Autoscalers ignore a workload with 0 replicas.
  if (replicas == 0) return Done{};
  Value held = Value::object();
  object::name_kind(held, resource);
  held.set({"metadata", "name"}, live.at({"metadata", "name"}));
  held.set({"metadata", "namespace"}, live.at({"metadata", "namespace"}));
  held.set({"metadata", "uid"}, live.at({"metadata", "uid"}));
  held.set({"spec", "replicas"}, replicas);
  // Without force: if an autoscaler owns the field already, it keeps it.
  const auto handed =
      api_.apply(resource, held, {.manager = std::string(kHandOverManager), .is_forced = false});
  // Another manager owns the field and has just changed it.
  if (handed.ok() || has_cause(handed.error(), client::kFieldManagerConflict)) return Done{};
  return handed.error();
}

Answer<Done> Applier::take_back(const Value& desired) {
  const Value& reference = desired.at({"metadata", "ownerReferences"}).items().at(0);
  const std::string name(reference["name"].text());
  const auto owner = api_.get(routers_resource(), {object::key_of(desired).name_space, name});
  if (!owner.ok() && !failed(owner, Reason::NotFound)) return owner.error();
  const bool lives = owner.ok() && !object::is_being_deleted(*owner) &&
                     // The UID too, because another object may have the same name now.
                     object::uid_of(*owner) == reference["uid"].text();
  if (!lives) {
    Failure made;
    made.reason = Reason::Conflict;
    made.message = "MultimodalRouter " + name +
                   " was deleted: the operator does not adopt its remaining objects";
    return made;
  }
  log(LogLevel::Info, "adopting an object without an owner",
      {{"kind", desired["kind"].text()}, {"object", object::text_of(object::key_of(desired))}});
  return Done{};
}

Answer<bool> Applier::apply(const Value& desired) {
  const std::string kind(desired["kind"].text());
  const object::Resource* resource = rendered_of(kind);
  SL_CHECK(resource != nullptr);
  const Name name(kind, object::key_of(desired));
  const auto live = caches_.find(*resource, name.second);
  if (live != nullptr && is_as_written(name, desired, *live)) return false;
  if (live == nullptr) {
    // An object without our label is in no cache, but may exist and belong to another owner.
    const auto there = api_.get(*resource, name.second);
    if (!there.ok() && !failed(there, Reason::NotFound)) return there.error();
    if (there.ok() && is_foreign(desired, *there)) return name_taken(desired, *there);
  } else if (is_foreign(desired, *live)) {
    return name_taken(desired, *live);
  }
  const bool has_lost_owner = live != nullptr && object::controller_uid_of(*live).empty() &&
                              !object::controller_uid_of(desired).empty();
  if (has_lost_owner) SL_TRY(take_back(desired));
  if (live != nullptr && leaves_replicas(desired, *live)) SL_TRY(hand_over(*resource, desired));
  const Value answer =
      SL_TRY(api_.apply(*resource, desired, {.manager = std::string(kFieldManager)}));
  if (is_foreign(desired, answer)) return name_taken(desired, answer);
  if (!is_watched(desired, answer)) return relabelled(desired);
  const Key router{name.second.name_space,
                   std::string(object::label_of(desired, desired::kRouterLabel))};
  const MutexLock lock(mutex_);
  written_[name] = {
      router, desired, projection_of(desired, answer),
      live == nullptr ? std::string() : std::string(object::resource_version_of(*live))};
  return live == nullptr || generation_of(*live) != generation_of(answer);
}

Answer<Done> Applier::prune(std::string_view owner_uid, const PruneExceptions& kept) {
  for (const object::Resource& resource : rendered_resources()) {
    for (const auto& object : caches_.owned(resource, owner_uid)) {
      const Key key = object::key_of(*object);
      const std::string revision(object::label_of(*object, desired::kRevisionLabel));
      const bool is_leaving = kept.leaving.contains(revision);
      const bool is_frontend =
          object::label_of(*object, desired::kComponentLabel) == desired::kFrontend;
      const bool is_kept = kept.names.contains(resource.kind + "/" + key.name) ||
                           kept.revisions.contains(revision) || (is_leaving && !is_frontend);
      if (is_kept) continue;
      if (object::is_being_deleted(*object)) continue;
      client::DeleteOptions options;
      options.uid = object::uid_of(*object);
      options.resource_version = object::resource_version_of(*object);
      if (is_leaving) options.propagation = client::Propagation::Foreground;
      const auto removed = api_.remove(resource, key, options);
      if (!removed.ok() && !failed(removed, Reason::NotFound)) return removed;
      log(LogLevel::Info, "object deleted",
          {{"kind", resource.kind}, {"object", object::text_of(key)}});
      const MutexLock lock(mutex_);
      written_.erase({resource.kind, key});
    }
  }
  return Done{};
}

void Applier::forget(const Key& router) {
  const MutexLock lock(mutex_);
  std::erase_if(written_, [&](const auto& one) { return one.second.router == router; });
}

}  // namespace sightline::owned
