// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/network_policy.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

// "frontend,router" for pods of these components, "anywhere" for a rule without peers.
std::string peers(const Value& rule) {
  if (rule["from"].is_null()) return "anywhere";
  const Value& peer = rule["from"].items().at(0);
  EXPECT_EQ(peer.at({"podSelector", "matchLabels", kRouterLabel}).text(), "shop");
  std::string text;
  const Value& expression = peer.at({"podSelector", "matchExpressions"}).items().at(0);
  for (const std::string& component : test::texts(expression["values"])) {
    text += (text.empty() ? "" : ",") + component;
  }
  return text;
}

// "8000 from anywhere" of each rule.
std::set<std::string> rules(const crd::Spec& spec, const std::string& component,
                            bool is_scraped = false) {
  const Value policy = test::find(network_policies(test::render_input_of(spec), is_scraped),
                                  "NetworkPolicy", "shop-" + component);
  EXPECT_EQ(policy.at({"spec", "podSelector", "matchLabels", kComponentLabel}).text(), component);
  std::set<std::string> made;
  for (const Value& rule : policy.at({"spec", "ingress"}).items()) {
    const Value& ports = rule["ports"];
    const std::string port =
        ports.is_null() ? "all" : std::to_string(*ports.items().at(0)["port"].integer());
    made.insert(port + " from " + peers(rule));
  }
  return made;
}

using Rules = std::set<std::string>;

TEST(NetworkPolicies, EachPortIsForThoseThatNeedIt) {
  const crd::Spec spec = test::small_spec();
  EXPECT_EQ(rules(spec, "frontend"), (Rules{"8000 from anywhere", "9090 from anywhere"}));
  EXPECT_EQ(rules(spec, "router"), (Rules{"8092 from frontend", "9090 from anywhere"}));
  EXPECT_EQ(rules(spec, "worker"), (Rules{"8000 from frontend,router"}));
  EXPECT_EQ(rules(spec, "agent"), Rules{});
  EXPECT_EQ(rules(spec, "nats"),
            (Rules{"4222 from frontend,router,worker,agent", "6222 from nats"}));
}

TEST(NetworkPolicies, WhoIsScrapedCanBeReachedForIt) {
  const crd::Spec spec = test::small_spec();
  EXPECT_EQ(rules(spec, "worker", true),
            (Rules{"8000 from frontend,router", "9090 from anywhere"}));
  EXPECT_EQ(rules(spec, "agent", true), (Rules{"9090 from anywhere"}));
}

TEST(NetworkPolicies, WorkersOfSplitRolesReachEachOther) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].role = crd::Role::Prefill;
  EXPECT_TRUE(rules(spec, "worker").contains("all from worker"));
}

TEST(NetworkPolicies, DisabledSpecRendersNoPolicies) {
  crd::Spec spec = test::small_spec();
  spec.network_policy.enabled = false;
  EXPECT_TRUE(network_policies(test::render_input_of(spec), true).empty());
}

TEST(NetworkPolicies, AnExternalNatsHasNone) {
  crd::Spec spec = test::small_spec();
  spec.nats.external.emplace();
  EXPECT_EQ(network_policies(test::render_input_of(spec), false).size(), 4U);
}

}  // namespace
}  // namespace sightline::desired
