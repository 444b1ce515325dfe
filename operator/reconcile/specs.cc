// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/specs.h"

#include <utility>

#include "common/base/json.h"

#include "operator/crd/read.h"
#include "operator/crd/write.h"
#include "operator/desired/object_names.h"

namespace sightline::reconcile {
namespace {

using object::Value;

constexpr std::string_view kAccepted = "accepted.json";
constexpr std::string_view kImages = "images.json";
constexpr std::string_view kTemplate = "chat-template-digest";
constexpr std::string_view kRevisionPrefix = "revision-";
constexpr std::string_view kSuffix = ".json";

std::optional<crd::Spec> spec_of(std::string_view json) {
  auto document = json::Document::parse(std::string(R"({"spec":)") + std::string(json) + "}");
  // A damaged entry must not stop the others.
  if (!document.ok()) return std::nullopt;
  auto spec = crd::read_spec(document->root());
  if (!spec.ok()) return std::nullopt;
  return std::move(*spec);
}

Value images_of(const KeptSpecs& specs) {
  Value images = Value::object();
  images.member("version") = specs.version;
  images.member("router") = specs.images.router;
  images.member("nats") = specs.images.nats;
  images.member("download") = specs.images.download;
  return images;
}

void read_images(std::string_view json, KeptSpecs& specs) {
  const auto images = Value::parse(std::string(json));
  if (!images.ok()) return;
  specs.version = (*images)["version"].text();
  specs.images.router = (*images)["router"].text();
  specs.images.nats = (*images)["nats"].text();
  specs.images.download = (*images)["download"].text();
}

}  // namespace

Value specs_config_map(const desired::Owner& owner, const Value& owner_reference,
                       const KeptSpecs& specs) {
  Value map = Value::object();
  map.member("apiVersion") = "v1";
  map.member("kind") = "ConfigMap";
  map.set({"metadata", "name"}, desired::shared_name(owner, "specs"));
  map.set({"metadata", "namespace"}, owner.name_space);
  // The label makes the cache keep it.
  map.set({"metadata", "labels"}, desired::labels(owner, "specs", {}));
  map.set({"metadata", "ownerReferences"}, Value::array({owner_reference}));
  if (specs.accepted) map.set({"data", kAccepted}, crd::spec_json(*specs.accepted));
  map.set({"data", kImages}, images_of(specs).to_text());
  if (!specs.template_digest.empty()) map.set({"data", kTemplate}, specs.template_digest);
  for (const auto& [revision, spec] : specs.revisions) {
    const std::string name = std::string(kRevisionPrefix) + revision + std::string(kSuffix);
    map.set({"data", name}, crd::spec_json(spec));
  }
  return map;
}

KeptSpecs specs_of(const Value& config_map) {
  KeptSpecs specs;
  for (const auto& [name, json] : config_map["data"].members()) {
    if (name == kAccepted) {
      specs.accepted = spec_of(json.text());
      continue;
    }
    if (name == kImages) read_images(json.text(), specs);
    if (name == kTemplate) specs.template_digest = json.text();
    if (!name.starts_with(kRevisionPrefix) || !name.ends_with(kSuffix)) continue;
    auto spec = spec_of(json.text());
    if (!spec) continue;
    const std::size_t length = name.size() - kRevisionPrefix.size() - kSuffix.size();
    specs.revisions[name.substr(kRevisionPrefix.size(), length)] = std::move(*spec);
  }
  return specs;
}

crd::Spec with_live_fields(crd::Spec older, const crd::Spec& accepted) {
  // It is part of the pods. A new value would replace pods that are leaving anyway.
  const std::string drain_timeout = older.rollout.drain_timeout;
  older.rollout = accepted.rollout;
  older.rollout.drain_timeout = drain_timeout;
  older.disruption = accepted.disruption;
  older.network_policy = accepted.network_policy;
  older.monitoring = accepted.monitoring;
  older.log_level = accepted.log_level;
  older.router.policy = accepted.router.policy;
  older.router.weights = accepted.router.weights;
  older.router.request_timeout = accepted.router.request_timeout;
  older.frontend.service = accepted.frontend.service;
  older.frontend.replicas = accepted.frontend.replicas;
  older.frontend.autoscaling = accepted.frontend.autoscaling;
  older.frontend.concurrent_requests_max = accepted.frontend.concurrent_requests_max;
  older.multimodal.images_max = accepted.multimodal.images_max;
  older.multimodal.image_bytes_max = accepted.multimodal.image_bytes_max;
  older.multimodal.fetch = accepted.multimodal.fetch;
  older.multimodal.forward = accepted.multimodal.forward;
  older.nats = accepted.nats;
  older.suspend = accepted.suspend;
  return older;
}

}  // namespace sightline::reconcile
