// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/unobeyed.h"

namespace sightline::desired {
namespace {

std::string role_of(std::size_t pool) {
  return "spec.pools[" + std::to_string(pool) +
         "].role: it has no effect yet. Frontends send whole requests to workers of all roles";
}

}  // namespace

std::vector<std::string> unobeyed(const crd::Spec& spec) {
  std::vector<std::string> fields;
  if (spec.model.chat_template) {
    fields.emplace_back(
        "spec.model.chatTemplate: frontends do not use it yet. They use the model's own template "
        "and predict overlap wrongly. Put the template into the model's files as "
        "chat_template.jinja");
  }
  if (!spec.multimodal.processor.empty()) {
    fields.emplace_back(
        "spec.multimodal.processor: frontends do not use it yet. They use the model's own settings "
        "and predict overlap behind images wrongly. Put the settings into "
        "preprocessor_config.json");
  }
  if (spec.kv.events == crd::EventsMode::Approximate) {
    fields.emplace_back(
        "spec.kv.events: with Approximate, routers receive no KV events and choose workers by load "
        "alone");
  }
  for (std::size_t i = 0; i < spec.pools.size(); ++i) {
    if (spec.pools[i].role != crd::Role::Aggregated) fields.push_back(role_of(i));
  }
  return fields;
}

}  // namespace sightline::desired
