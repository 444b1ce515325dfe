// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/accept.h"

#include <set>
#include <utility>

#include "operator/commands/container_commands.h"
#include "operator/crd/write.h"
#include "operator/desired/model_files.h"
#include "operator/desired/object_names.h"
#include "operator/desired/pod_merge.h"
#include "operator/kube/object/value.h"

namespace sightline::judge {
namespace {

using object::Value;

std::string field_of(std::size_t pool, std::string_view below) {
  return "spec.pools[" + std::to_string(pool) + "]." + std::string(below);
}

Trouble trouble(std::string reason, std::string message) {
  return {.reason = std::move(reason), .message = std::move(message)};
}

Trouble check_pod_template(const crd::Opaque& opaque, std::string_view container,
                           const std::string& field) {
  if (opaque.json.empty()) return {};
  const auto parsed = Value::parse(opaque.json);
  if (!parsed.ok() || !parsed->is_object()) {
    return trouble("PodTemplateInvalid", field + ": must be an object");
  }
  const std::vector<std::string> fields = desired::fights(*parsed, container);
  if (fields.empty()) return {};
  return trouble("PodTemplateRefused",
                 field + "." + fields.front() + ": the operator sets this field. Leave it out");
}

Trouble check_env(const crd::WorkerTemplate& own, std::size_t pool) {
  for (std::size_t i = 0; i < own.env.size(); ++i) {
    const std::string& json = own.env[i].value_from.json;
    if (json.empty()) continue;
    const auto parsed = Value::parse(json);
    if (parsed.ok() && parsed->is_object()) continue;
    return trouble("EnvInvalid", field_of(pool, "template.env[" + std::to_string(i) +
                                                    "].valueFrom: must be an object"));
  }
  return {};
}

// The limits of the simulator.
constexpr std::int64_t kSimulatedBlockMax = 1024;
constexpr std::int64_t kSimulatedLengthMax = 1'048'576;

Trouble check_simulator(const crd::Spec& spec, std::size_t pool) {
  if (spec.kv.block_size > kSimulatedBlockMax) {
    return trouble("SimulatorLimit", "spec.kv.blockSize: must be at most 1024, because " +
                                         field_of(pool, "backend") + " is simulator");
  }
  if (spec.model.max_model_len.value_or(0) > kSimulatedLengthMax) {
    return trouble("SimulatorLimit", "spec.model.maxModelLen: must be at most 1048576, because " +
                                         field_of(pool, "backend") + " is simulator");
  }
  return {};
}

// Workers of all pools share one set of names, because routers know a worker only by its name.
Trouble check_endpoints(const crd::Spec& spec) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.pools.size(); ++i) {
    for (const crd::Endpoint& endpoint : spec.pools[i].endpoints) {
      if (names.insert(endpoint.name).second) continue;
      return trouble("EndpointTwice", field_of(i, "endpoints") +
                                          ": another pool also has an endpoint " + endpoint.name +
                                          ". Rename one of them");
    }
  }
  return {};
}

// Images that only some specs need.
Trouble check_images(const crd::Spec& spec, const crd::NotedImages& images) {
  const bool is_managed = !spec.nats.external;
  const bool names_nats = spec.nats.managed && !spec.nats.managed->image.empty();
  if (is_managed && !names_nats && images.nats.empty()) {
    return trouble("ImageMissing",
                   "spec.nats.managed.image: set the image of NATS servers, because the operator "
                   "was started without --nats-image");
  }
  const bool is_downloaded = desired::is_downloaded(spec.model);
  if (is_downloaded && desired::download_image(spec, images).empty()) {
    return trouble(
        "ImageMissing",
        "spec.model.source: no image can download the model, because the operator was started "
        "without --download-image and no pool has an image of vLLM or SGLang. Set pvc or image "
        "here");
  }
  return {};
}

Trouble check_pool(const crd::Spec& spec, std::size_t number, const std::string& default_image) {
  const crd::Pool& pool = spec.pools[number];
  if (!pool.worker_template) return {};
  const crd::WorkerTemplate& own = *pool.worker_template;
  const auto arguments = commands::check_own_arguments(pool);
  if (!arguments.ok()) {
    return trouble("ArgumentsRefused", field_of(number, "template." + arguments.error().param) +
                                           ": " + arguments.error().message);
  }
  const bool is_ours = pool.backend == crd::Backend::Simulator;
  if (is_ours) {
    Trouble limit = check_simulator(spec, number);
    if (limit.is_there()) return limit;
  }
  if (own.image.empty() && (!is_ours || default_image.empty())) {
    return trouble("ImageMissing", field_of(number, "template.image: set the engine's image"));
  }
  const Trouble env = check_env(own, number);
  if (env.is_there()) return env;
  return check_pod_template(own.pod_template, desired::kWorker,
                            field_of(number, "template.podTemplate"));
}

std::string name_of(const crd::SecretRef& secret) { return secret.name + "/" + secret.key; }

Trouble check_references(const crd::Spec& spec, const ExistingObjects& found) {
  const References references = references_of(spec);
  for (const crd::SecretRef& secret : references.secrets) {
    if (found.secrets.contains(name_of(secret))) continue;
    return trouble("SecretMissing", "this namespace has no Secret " + secret.name + " with key " +
                                        secret.key + ". Create it");
  }
  if (references.chat_template && !found.chat_template) {
    return trouble("ConfigMapMissing", "spec.model.chatTemplate: this namespace has no ConfigMap " +
                                           references.chat_template->config_map + " with key " +
                                           references.chat_template->key + ". Create it");
  }
  if (references.claim && !found.has_claim) {
    return trouble("ClaimMissing",
                   "spec.model.source.pvc: this namespace has no PersistentVolumeClaim " +
                       *references.claim + ". Create it");
  }
  return {};
}

// One ConfigMap stores the accepted spec and the specs of three revisions. Its limit is a megabyte.
constexpr std::size_t kSpecBytesMax = 200 * 1024;

Trouble check_size(const crd::Spec& spec) {
  const std::size_t bytes = crd::spec_json(spec).size();
  if (bytes <= kSpecBytesMax) return {};
  return trouble(
      "SpecTooLarge",
      "spec: has " + std::to_string(bytes) + " bytes, and the operator stores at most " +
          std::to_string(kSpecBytesMax) +
          ". Shorten pod templates, arguments and environment, or move them into a ConfigMap");
}

}  // namespace

References references_of(const crd::Spec& spec) {
  References references;
  const auto add = [&](const std::optional<crd::SecretRef>& secret) {
    if (secret) references.secrets.push_back(*secret);
  };
  add(spec.model.token_secret);
  if (spec.nats.external) {
    add(spec.nats.external->credentials_secret);
    add(spec.nats.external->ca_secret);
  }
  references.chat_template = spec.model.chat_template;
  if (spec.model.source && spec.model.source->pvc) {
    references.claim = spec.model.source->pvc->claim_name;
  }
  return references;
}

Trouble why_not_accepted(const crd::Spec& spec, const ExistingObjects& found,
                         const crd::NotedImages& images) {
  if (spec.image.empty() && images.router.empty()) {
    return trouble("ImageMissing",
                   "spec.image: set the image of frontends and routers, because the operator "
                   "was started without --router-image");
  }
  const std::string& image = spec.image.empty() ? images.router : spec.image;
  for (std::size_t i = 0; i < spec.pools.size(); ++i) {
    Trouble found_there = check_pool(spec, i, image);
    if (found_there.is_there()) return found_there;
  }
  for (Trouble general : {check_size(spec), check_endpoints(spec), check_images(spec, images)}) {
    if (general.is_there()) return general;
  }
  const crd::ManagedNats nats = spec.nats.managed.value_or(crd::ManagedNats{});
  for (Trouble refused :
       {check_pod_template(spec.frontend.pod_template, desired::kFrontend,
                           "spec.frontend.podTemplate"),
        check_pod_template(spec.router.pod_template, desired::kRouterComponent,
                           "spec.router.podTemplate"),
        check_pod_template(nats.pod_template, desired::kNats, "spec.nats.managed.podTemplate"),
        check_pod_template(spec.agents.pod_template, desired::kAgent, "spec.agents.podTemplate")}) {
    if (refused.is_there()) return refused;
  }
  return check_references(spec, found);
}

}  // namespace sightline::judge
