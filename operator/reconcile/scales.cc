// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/scales.h"

#include <algorithm>
#include <string>

#include "operator/desired/object_names.h"
#include "operator/desired/pools.h"
#include "operator/judge/counts.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/applier.h"
#include "operator/owned/kinds.h"

namespace sightline::reconcile {

using client::Answer;
using client::Reason;
using object::Key;
using object::Value;

namespace {

Answer<Done> done_unless(const Answer<Value>& answer, Reason harmless) {
  if (answer.ok() || failed(answer, harmless)) return Done{};
  return answer.error();
}

std::string selector_text(const desired::Owner& owner, const crd::Pool& pool) {
  const Value labels = desired::selector_labels(owner, desired::kWorker, {}, pool.name);
  std::string text;
  for (const auto& [name, value] : labels.members()) {
    text += (text.empty() ? "" : ",") + name + "=" + std::string(value.text());
  }
  return text;
}

}  // namespace

Answer<Done> Scales::make(const judge::ClusterState& cluster, const desired::RenderInput& input,
                          const crd::Pool& pool) {
  const Value first = desired::pool_object_of(input, pool, judge::wanted_of(cluster, pool));
  const Key key = object::key_of(first);
  const auto there = caches_.find(owned::scales_resource(), key);
  if (there == nullptr) {
    return done_unless(api_.create(owned::scales_resource(), first), Reason::AlreadyExists);
  }
  if (owned::is_foreign(first, *there)) return owned::name_taken(first, *there);
  const std::int64_t asked = there->at({"spec", "replicas"}).integer().value_or(0);
  const bool is_within =
      asked >= pool.autoscaling->min_replicas && asked <= pool.autoscaling->max_replicas;
  if (is_within) return Done{};
  return done_unless(api_.merge_patch(owned::scales_resource(), key, first, {}), Reason::NotFound);
}

Answer<Done> Scales::tell(const judge::ClusterState& cluster, const desired::Owner& owner,
                          const crd::Pool& pool) {
  const Key key{owner.name_space, desired::shared_name(owner, pool.name)};
  const auto there = caches_.find(owned::scales_resource(), key);
  // make() handles an object before it is ours.
  if (there == nullptr || object::controller_uid_of(*there) != cluster.uid) return Done{};
  const auto pods = std::count_if(cluster.pods.begin(), cluster.pods.end(), [&](const auto& pod) {
    return pod.component == desired::kWorker && pod.pool == pool.name && !pod.is_over;
  });
  Value status = Value::object();
  status.member("observedGeneration") = there->at({"metadata", "generation"});
  status.member("replicas") = static_cast<std::int64_t>(pods);
  status.member("selector") = selector_text(owner, pool);
  if (there->at({"status"}) == status) return Done{};
  Value patch = Value::object();
  object::name_kind(patch, owned::scales_resource());
  patch.set({"metadata", "name"}, key.name);
  patch.set({"metadata", "namespace"}, key.name_space);
  patch.member("status") = status;
  return done_unless(api_.apply(owned::scales_resource(), patch, owned::as_status()),
                     Reason::NotFound);
}

}  // namespace sightline::reconcile
