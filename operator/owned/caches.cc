// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/caches.h"

#include <algorithm>
#include <utility>

#include "operator/desired/names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"

namespace sightline::owned {

using object::Key;
using object::Resource;
using object::Value;
using reflector::ObjectPtr;

namespace {

constexpr std::string_view kByOwner = "owner";
constexpr std::string_view kByRouter = "router";

// "namespace/name" of the MultimodalRouter that an object is labelled with.
std::vector<std::string> router_of(const Value& object) {
  const std::string_view name = object::label_of(object, desired::kRouterLabel);
  if (name.empty()) return {};
  return {object::text_of({object::key_of(object).name_space, std::string(name)})};
}

Key router_key_of(const Value& object, bool is_router) {
  Key key = object::key_of(object);
  if (!is_router) key.name = object::label_of(object, desired::kRouterLabel);
  return key;
}

// What changed of a MultimodalRouter is its status alone, which is our own writing. To look again
// for that would be to look again for every message that moves.
bool is_own_writing(const reflector::Change& change) {
  if (change.before == nullptr || change.after == nullptr) return false;
  const Value& before = (*change.before)["metadata"];
  const Value& after = (*change.after)["metadata"];
  return before["uid"] == after["uid"] && before["generation"] == after["generation"] &&
         before["deletionTimestamp"] == after["deletionTimestamp"];
}

// What pods run, and what ReplicaSets make them of, is most of them and is read by nobody here.
void trim(Value& object) {
  object.erase({"spec"});
  object.erase({"metadata", "annotations"});
}

}  // namespace

Caches::Caches(Options options, client::ApiClient& api, const Clock& clock,
               runtime::Metrics& metrics)
    : options_(std::move(options)), api_(api), clock_(clock), metrics_(metrics) {
  const std::string ours =
      std::string(desired::kManagerLabel) + "=" + std::string(desired::kManager);
  watch(routers_resource(), {});
  watch(pods_resource(), std::string(desired::kRouterLabel));
  watch(replica_sets_resource(), ours);
  for (const Resource& resource : rendered_resources()) {
    if (resource.kind == "PodMonitor" && !options_.has_pod_monitors) continue;
    watch(resource, ours);
  }
}

void Caches::watch(const Resource& resource, std::string labels) {
  reflector::Informer::Options informer;
  informer.resource = resource;
  informer.of.name_space = options_.name_space;
  informer.of.labels = std::move(labels);
  informer.indexes[std::string(kByOwner)] = reflector::by_controller();
  informer.indexes[std::string(kByRouter)] = router_of;
  informer.seed = options_.seed + informers_.size();
  const bool is_router = resource.kind == routers_resource().kind;
  if (resource == pods_resource() || resource == replica_sets_resource()) informer.trim = trim;
  informer.on_change = [tell = options_.on_change, is_router](const reflector::Change& change) {
    if (is_router && is_own_writing(change)) return;
    for (const ObjectPtr& object : {change.before, change.after}) {
      if (object == nullptr) continue;
      const Key key = router_key_of(*object, is_router);
      if (!key.name.empty()) tell(key);
    }
  };
  informers_[resource.plural] =
      std::make_unique<reflector::Informer>(std::move(informer), api_, clock_, metrics_);
}

bool Caches::wait_until_synced(const std::stop_token& stop, Duration time_max) const {
  return std::all_of(informers_.begin(), informers_.end(), [&](const auto& informer) {
    return informer.second->wait_until_synced(stop, time_max);
  });
}

bool Caches::has_synced() const {
  return std::all_of(informers_.begin(), informers_.end(),
                     [](const auto& informer) { return informer.second->has_synced(); });
}

const reflector::Store& Caches::routers() const {
  return informers_.find(routers_resource().plural)->second->store();
}

ObjectPtr Caches::find(const Resource& resource, const Key& key) const {
  const auto informer = informers_.find(resource.plural);
  return informer == informers_.end() ? nullptr : informer->second->store().get(key);
}

std::size_t Caches::count(const Resource& resource) const {
  const auto informer = informers_.find(resource.plural);
  return informer == informers_.end() ? 0 : informer->second->store().size();
}

std::vector<ObjectPtr> Caches::owned(const Resource& resource, std::string_view owner_uid) const {
  const auto informer = informers_.find(resource.plural);
  if (informer == informers_.end()) return {};
  return informer->second->store().find(kByOwner, owner_uid);
}

std::vector<ObjectPtr> Caches::pods_of(const Key& router) const {
  const auto informer = informers_.find(pods_resource().plural);
  return informer->second->store().find(kByRouter, object::text_of(router));
}

}  // namespace sightline::owned
