// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/network_policy.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "operator/commands/container_commands.h"
#include "operator/desired/nats_config.h"

namespace sightline::desired {

using object::Value;

namespace {

using Components = std::initializer_list<std::string_view>;

// From pods of these components, or from anywhere if there are no components. The port is a number,
// because some implementations do not find the names of sidecars' ports.
Value rule(const RenderInput& input, Components components, std::optional<std::int64_t> port) {
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
  peer.set({"podSelector", "matchLabels", kRouterLabel}, input.owner.name);
  peer.set({"podSelector", "matchExpressions"}, Value::array({std::move(expression)}));
  made.member("from") = Value::array({std::move(peer)});
  return made;
}

Value policy(const RenderInput& input, std::string_view component, Value rules) {
  Value object = object_of(input, {.api_version = "networking.k8s.io/v1",
                                   .kind = "NetworkPolicy",
                                   .name = shared_name(input.owner, component),
                                   .labels = labels(input.owner, component, {})});
  object.set({"spec", "podSelector", "matchLabels"}, selector_labels(input.owner, component, {}));
  object.set({"spec", "policyTypes"}, Value::array({"Ingress"}));
  object.set({"spec", "ingress"}, std::move(rules));
  return object;
}

bool has_split_roles(const crd::Spec& spec) {
  return std::any_of(spec.pools.begin(), spec.pools.end(),
                     [](const crd::Pool& pool) { return pool.role != crd::Role::Aggregated; });
}

}  // namespace

std::vector<Value> network_policies(const RenderInput& input, bool is_scraped) {
  if (!input.spec.network_policy.enabled) return {};
  const auto rules = [&](std::initializer_list<Value> own, bool has_admin) {
    Value all = Value::array(own);
    if (has_admin) all.append(rule(input, {}, kAdminPort));
    return all;
  };
  Value workers =
      rules({rule(input, {kFrontend, kRouterComponent}, commands::kEnginePort)}, is_scraped);
  // Workers with split roles may talk to each other on any port.
  if (has_split_roles(input.spec)) workers.append(rule(input, {kWorker}, std::nullopt));
  std::vector<Value> policies = {
      // The operator calls the admin ports of frontends and routers, so they stay open.
      policy(input, kFrontend, rules({rule(input, {}, kClientPort)}, true)),
      policy(input, kRouterComponent, rules({rule(input, {kFrontend}, kSelectionPort)}, true)),
      policy(input, kWorker, std::move(workers)),
      policy(input, kAgent, rules({}, is_scraped)),
  };
  if (input.spec.nats.external) return policies;
  policies.push_back(
      policy(input, kNats,
             rules({rule(input, {kFrontend, kRouterComponent, kWorker, kAgent}, kNatsPort),
                    rule(input, {kNats}, kNatsClusterPort)},
                   false)));
  return policies;
}

}  // namespace sightline::desired
