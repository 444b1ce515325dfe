// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/json.h"

#include "operator/crd/read.h"
#include "operator/desired/objects.h"
#include "operator/desired/render_input.h"

// The scenes that tests render, and helpers to inspect the objects.
namespace sightline::desired::test {

// The spec in a JSON text, with the defaults of the API server.
inline crd::Spec spec_of(const std::string& json) {
  const auto document = json::Document::parse(R"({"spec":)" + json + "}");
  SL_CHECK(document.ok());
  auto spec = crd::read_spec(document->root());
  SL_CHECK(spec.ok());
  return std::move(*spec);
}

// A model on a claim and one pool of vLLM workers. All other fields have their defaults.
inline crd::Spec small_spec() {
  return spec_of(R"({"model":{"name":"qwen","source":{"pvc":{"claimName":"models","path":"qwen"}}},
    "pools":[{"name":"a","template":{"image":"vllm:0.32"}}]})");
}

inline RenderInput render_input_of(crd::Spec spec, std::string name = "shop") {
  RenderInput input;
  input.owner = {.name_space = "prod", .name = std::move(name)};
  input.owner_reference = object::Value::object({{"apiVersion", "sightline.dev/v1alpha1"},
                                                 {"kind", "MultimodalRouter"},
                                                 {"name", input.owner.name},
                                                 {"uid", "11111111-2222-3333-4444-555555555555"},
                                                 {"controller", true},
                                                 {"blockOwnerDeletion", true}});
  input.spec = std::move(spec);
  input.agreement = agreement::agreement_of(
      input.spec,
      {.chat_template = input.spec.model.chat_template ? "digest" : "", .identity_key = "digest"});
  input.revision = agreement::revision_of(input.agreement);
  if (input.spec.model.chat_template) input.chat_template = "{{ messages }}";
  input.images = {.router = "sightline:1", .nats = "nats:2.11", .download = "hub:1"};
  return input;
}

inline const ClusterFacts kSurroundings = {
    .nats = {.frontend = "UFRONTEND", .router = "UROUTER", .agent = "UAGENT"},
    .has_pod_monitors = false};

// The sizes that a spec asks for.
inline Sizes sizes_of(const crd::Spec& spec) {
  Sizes sizes;
  if (!spec.frontend.autoscaling || spec.suspend) {
    sizes.frontends = spec.suspend ? 0 : spec.frontend.replicas.value_or(2);
  }
  sizes.routers = spec.suspend ? 0 : spec.router.replicas;
  for (const crd::Pool& pool : spec.pools) {
    if (pool.worker_template) sizes.pools[pool.name] = spec.suspend ? 0 : pool.replicas.value_or(1);
  }
  return sizes;
}

// All objects rendered from an input.
inline std::vector<object::Value> all_objects(const RenderInput& input,
                                              const std::vector<WorkerFields>& workers = {},
                                              const std::vector<ForeignPod>& foreign = {}) {
  std::vector<object::Value> objects = shared_objects(input, kSurroundings);
  for (auto& object : revision_objects(input, sizes_of(input.spec), workers, foreign)) {
    objects.push_back(std::move(object));
  }
  return objects;
}

// The object of this kind and name, or null.
inline object::Value find(const std::vector<object::Value>& objects, std::string_view kind,
                          std::string_view name) {
  for (const object::Value& object : objects) {
    if (object["kind"].text() == kind && object.at({"metadata", "name"}).text() == name) {
      return object;
    }
  }
  return {};
}

inline std::vector<object::Value> of_kind(const std::vector<object::Value>& objects,
                                          std::string_view kind) {
  std::vector<object::Value> found;
  for (const object::Value& object : objects) {
    if (object["kind"].text() == kind) found.push_back(object);
  }
  return found;
}

// The element of a list with this name, or null.
inline object::Value named(const object::Value& list, std::string_view name) {
  for (const object::Value& element : list.items()) {
    if (element["name"].text() == name) return element;
  }
  return {};
}

inline object::Value pod_of(const object::Value& workload) {
  return workload.at({"spec", "template", "spec"});
}

// A container or init container of a workload.
inline object::Value container_of(const object::Value& workload, std::string_view name) {
  const object::Value pod = pod_of(workload);
  object::Value container = named(pod["containers"], name);
  return container.is_null() ? named(pod["initContainers"], name) : container;
}

inline std::vector<std::string> texts(const object::Value& list) {
  std::vector<std::string> all;
  for (const object::Value& element : list.items()) all.emplace_back(element.text());
  return all;
}

inline std::string joined(const object::Value& list) {
  std::string line;
  for (const std::string& text : texts(list)) line += (line.empty() ? "" : " ") + text;
  return line;
}

}  // namespace sightline::desired::test
