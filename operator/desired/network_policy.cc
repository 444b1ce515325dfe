// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/network_policy.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "operator/commands/commands.h"
#include "operator/desired/nats_config.h"

namespace sightline::desired {

using object::Value;

namespace {

using Components = std::initializer_list<std::string_view>;

// From pods of these components, or from anywhere if there are no components. The port is a number,
// because some implementations do not find the names of sidecars' ports.
Value rule(const Scene& scene, Components components, std::optional<std::int64_t> port) {
  Value made = Value::object();
  if (port) {
    made.member("ports") = Value::array({Value::object({{"port", *port}, {"protocol", "TCP"}})});
  }
  if (components.size() == 0) return made;
  Value expression = Value::object({{"key", kComponentLabel}, {"operator", "In"}});
  for (const std::string_view component : components) {
    expression.member("values").append(component);
  }
  Value peer = Value::object();
  peer.set({"podSelector", "matchLabels", kRouterLabel}, scene.owner.name);
  peer.set({"podSelector", "matchExpressions"}, Value::array({std::move(expression)}));
  made.member("from") = Value::array({std::move(peer)});
  return made;
}

Value policy(const Scene& scene, std::string_view component, Value rules) {
  Value object = object_of(scene, {.api_version = "networking.k8s.io/v1",
                                   .kind = "NetworkPolicy",
                                   .name = shared_name(scene.owner, component),
                                   .labels = labels(scene.owner, component, {})});
  object.set({"spec", "podSelector", "matchLabels"}, selector_labels(scene.owner, component, {}));
  object.set({"spec", "policyTypes"}, Value::array({"Ingress"}));
  object.set({"spec", "ingress"}, std::move(rules));
  return object;
}

bool has_split_roles(const crd::Spec& spec) {
  return std::any_of(spec.pools.begin(), spec.pools.end(),
                     [](const crd::Pool& pool) { return pool.role != crd::Role::Aggregated; });
}

}  // namespace

std::vector<Value> network_policies(const Scene& scene, bool is_scraped) {
  if (!scene.spec.network_policy.enabled) return {};
  const auto rules = [&](std::initializer_list<Value> own, bool has_admin) {
    Value all = Value::array(own);
    if (has_admin) all.append(rule(scene, {}, kAdminPort));
    return all;
  };
  Value workers =
      rules({rule(scene, {kFrontend, kRouterComponent}, commands::kEnginePort)}, is_scraped);
  // Workers with split roles may talk to each other on any port.
  if (has_split_roles(scene.spec)) workers.append(rule(scene, {kWorker}, std::nullopt));
  std::vector<Value> policies = {
      // The operator calls the admin ports of frontends and routers, so they stay open.
      policy(scene, kFrontend, rules({rule(scene, {}, kClientPort)}, true)),
      policy(scene, kRouterComponent, rules({rule(scene, {kFrontend}, kSelectionPort)}, true)),
      policy(scene, kWorker, std::move(workers)),
      policy(scene, kAgent, rules({}, is_scraped)),
  };
  if (scene.spec.nats.external) return policies;
  policies.push_back(
      policy(scene, kNats,
             rules({rule(scene, {kFrontend, kRouterComponent, kWorker, kAgent}, kNatsPort),
                    rule(scene, {kNats}, kNatsClusterPort)},
                   false)));
  return policies;
}

}  // namespace sightline::desired
