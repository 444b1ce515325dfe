// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/unobeyed.h"

namespace sightline::desired {
namespace {

std::string role_of(std::size_t pool) {
  return "spec.pools[" + std::to_string(pool) +
         "].role: frontends send whole requests to any worker, whatever its role";
}

}  // namespace

std::vector<std::string> unobeyed(const crd::Spec& spec) {
  std::vector<std::string> fields;
  if (spec.model.chat_template) {
    fields.emplace_back(
        "spec.model.chatTemplate: workers have it, frontends use the model's own, so that overlap "
        "is predicted wrongly; put it into the model's files as chat_template.jinja");
  }
  if (!spec.multimodal.processor.empty()) {
    fields.emplace_back(
        "spec.multimodal.processor: workers have it, frontends use the model's own, so that "
        "overlap behind images is predicted wrongly; put it into preprocessor_config.json");
  }
  if (spec.kv.events == crd::EventsMode::Approximate) {
    fields.emplace_back(
        "spec.kv.events: Approximate tells routers nothing of what workers hold, they are chosen "
        "by load alone");
  }
  for (std::size_t i = 0; i < spec.pools.size(); ++i) {
    if (spec.pools[i].role != crd::Role::Aggregated) fields.push_back(role_of(i));
  }
  return fields;
}

}  // namespace sightline::desired
