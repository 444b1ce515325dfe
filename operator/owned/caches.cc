// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/caches.h"

#include <algorithm>
#include <utility>

#include "operator/desired/object_names.h"
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

// "namespace/name" of the MultimodalRouter in the object's label.
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

// Only the status of the MultimodalRouter changed, which the operator itself writes. To reconcile
// for that would repeat for each changed message.
bool is_own_writing(const reflector::Change& change) {
  if (change.before == nullptr || change.after == nullptr) return false;
  const Value& before = (*change.before)["metadata"];
  const Value& after = (*change.after)["metadata"];
  return before["uid"] == after["uid"] && before["generation"] == after["generation"] &&
         before["deletionTimestamp"] == after["deletionTimestamp"];
}

// The spec of pods and ReplicaSets and the annotations of Secrets are most of their bytes. The
// operator does not read them.
void trim(Value& object) {
  object.erase({"spec"});
  object.erase({"metadata", "annotations"});
}

}  // namespace

Caches::Caches(Options options, client::ApiClient& api, const Clock& clock,
               runtime::Metrics& metrics)
    : options_(std::move(options)), api_(api), clock_(clock), metrics_(metrics) {
  // Watches by a label that only this operator uses: policies of a cluster may set the label of the
  // manager.
  const std::string ours(desired::kRouterLabel);
  watch(routers_resource(), {});
  watch(pods_resource(), ours);
  watch(replica_sets_resource(), ours);
  for (const Resource& resource : rendered_resources()) {
    watch(resource, ours);
  }
  watch(secrets_resource(), {});
}

void Caches::watch(const Resource& resource, const std::string& labels) {
  auto& informers = informers_[resource.plural];
  if (options_.name_spaces.empty()) informers.push_back(informer_of(resource, labels, {}));
  for (const std::string& name_space : options_.name_spaces) {
    informers.push_back(informer_of(resource, labels, name_space));
  }
}

std::unique_ptr<reflector::Informer> Caches::informer_of(const Resource& resource,
                                                         const std::string& labels,
                                                         const std::string& name_space) {
  reflector::Informer::Options informer;
  informer.resource = resource;
  informer.of.name_space = name_space;
  informer.of.labels = labels;
  informer.of.is_metadata_alone = resource == secrets_resource();
  // Without the right to list Secrets, they are read by name repeatedly.
  informer.is_optional = resource == pod_monitors_resource() || resource == secrets_resource();
  informer.indexes[std::string(kByOwner)] = reflector::by_controller();
  informer.indexes[std::string(kByRouter)] = router_of;
  // Each informer draws other random waits.
  informer.seed = options_.seed + made_++;
  const bool is_router = resource.kind == routers_resource().kind;
  if (resource == pods_resource() || resource == replica_sets_resource() ||
      resource == secrets_resource()) {
    informer.trim = trim;
  }
  informer.on_change = [tell = options_.on_change, is_router](const reflector::Change& change) {
    if (is_router && is_own_writing(change)) return;
    for (const ObjectPtr& object : {change.before, change.after}) {
      if (object == nullptr) continue;
      const Key key = router_key_of(*object, is_router);
      if (!key.name.empty()) tell(key);
    }
  };
  return std::make_unique<reflector::Informer>(std::move(informer), api_, clock_, metrics_);
}

const Caches::Informers::mapped_type& Caches::informers_of(const Resource& resource) const {
  static const Informers::mapped_type kNone;
  const auto found = informers_.find(resource.plural);
  return found == informers_.end() ? kNone : found->second;
}

bool Caches::wait_until_synced(const std::stop_token& stop, Duration time_max) const {
  return std::all_of(informers_.begin(), informers_.end(), [&](const auto& of_resource) {
    return std::all_of(
        of_resource.second.begin(), of_resource.second.end(),
        [&](const auto& informer) { return informer->wait_until_synced(stop, time_max); });
  });
}

bool Caches::has_synced() const {
  return std::all_of(informers_.begin(), informers_.end(), [](const auto& of_resource) {
    return std::all_of(of_resource.second.begin(), of_resource.second.end(),
                       [](const auto& informer) { return informer->has_synced(); });
  });
}

ObjectPtr Caches::router(const Key& key) const { return find(routers_resource(), key); }

ObjectPtr Caches::find(const Resource& resource, const Key& key) const {
  for (const auto& informer : informers_of(resource)) {
    if (ObjectPtr object = informer->store().get(key)) return object;
  }
  return nullptr;
}

bool Caches::knows(const Resource& resource) const {
  const auto& informers = informers_of(resource);
  return std::all_of(informers.begin(), informers.end(),
                     [](const auto& informer) { return informer->is_known(); });
}

std::size_t Caches::count(const Resource& resource) const {
  std::size_t count = 0;
  for (const auto& informer : informers_of(resource)) count += informer->store().size();
  return count;
}

std::vector<ObjectPtr> Caches::indexed(const Resource& resource, std::string_view index,
                                       std::string_view value) const {
  std::vector<ObjectPtr> objects;
  for (const auto& informer : informers_of(resource)) {
    const auto found = informer->store().find(index, value);
    objects.insert(objects.end(), found.begin(), found.end());
  }
  return objects;
}

std::vector<ObjectPtr> Caches::owned(const Resource& resource, std::string_view owner_uid) const {
  return indexed(resource, kByOwner, owner_uid);
}

std::vector<ObjectPtr> Caches::children(const Resource& resource, const Key& router,
                                        std::string_view uid) const {
  std::vector<ObjectPtr> children = owned(resource, uid);
  for (ObjectPtr& object : indexed(resource, kByRouter, object::text_of(router))) {
    // A child that lost its owner reference still has the label.
    if (object::controller_uid_of(*object).empty()) children.push_back(std::move(object));
  }
  return children;
}

std::vector<ObjectPtr> Caches::pods_of(const Key& router) const {
  return indexed(pods_resource(), kByRouter, object::text_of(router));
}

}  // namespace sightline::owned
