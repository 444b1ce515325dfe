// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/nats.h"

#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/contract/subjects.h"

#include "operator/desired/nats_config.h"
#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

const Owner kOwner = {.name_space = "prod", .name = "shop"};
const NatsKeys kKeys = {.frontend = "UF", .router = "UR", .agent = "UA"};

// The subjects in brackets after "publish:" or "subscribe:" of a user.
std::vector<std::string> allowed(const std::string& key, const std::string& verb) {
  const std::string config = nats_config(kOwner, kKeys, 1);
  const std::size_t user = config.find("nkey: " + key + ",");
  const std::size_t begin = config.find(verb + ": [", user);
  const std::string list = config.substr(begin, config.find(']', begin) - begin);
  const std::regex quoted("\"([^\"]+)\"");
  std::vector<std::string> subjects;
  for (std::sregex_iterator it(list.begin(), list.end(), quoted), end; it != end; ++it) {
    subjects.push_back((*it)[1].str());
  }
  return subjects;
}

std::vector<std::string> tokens(const std::string& subject) {
  std::vector<std::string> parts = {""};
  for (const char c : subject) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Whether a pattern covers a subject or another pattern, by the rules of NATS.
bool is_within(const std::string& subject, const std::string& pattern) {
  const auto said = tokens(subject);
  const auto may = tokens(pattern);
  for (std::size_t i = 0; i < may.size(); ++i) {
    if (may[i] == ">") return said.size() > i;
    if (i >= said.size()) return false;
    if (may[i] != "*" && may[i] != said[i]) return false;
  }
  return said.size() == may.size();
}

bool may(const std::string& key, const std::string& verb, const std::string& subject) {
  for (const std::string& pattern : allowed(key, verb)) {
    if (is_within(subject, pattern)) return true;
  }
  return false;
}

TEST(NatsConfig, EachRoleMayUseTheSubjectsItNeeds) {
  const contract::Subjects s("prod/shop", "k2x9p0aa");
  const std::string worker = "shop-k2x9p0aa-a-5d9f-x7k2p";
  const std::string router = "shop-k2x9p0aa-router-7b-9x";
  for (const char* key : {"UF", "UR", "UA"}) {
    EXPECT_TRUE(may(key, "publish", s.members())) << key;
    EXPECT_TRUE(may(key, "subscribe", s.all_members())) << key;
  }
  EXPECT_TRUE(may("UA", "publish", s.events(worker, 3)));
  EXPECT_TRUE(may("UA", "publish", s.replies(router)));
  EXPECT_TRUE(may("UA", "subscribe", s.asks(worker, 0)));
  EXPECT_TRUE(may("UR", "subscribe", s.events(worker, 3)));
  EXPECT_TRUE(may("UR", "subscribe", s.replies(router)));
  EXPECT_TRUE(may("UR", "publish", s.asks(worker, 0)));
  for (const char* verb : {"publish", "subscribe"}) {
    EXPECT_TRUE(may("UR", verb, s.returns(router))) << verb;
    EXPECT_TRUE(may("UR", verb, s.load())) << verb;
    EXPECT_TRUE(may("UR", verb, s.load_asks())) << verb;
    EXPECT_TRUE(may("UR", verb, s.list_asks())) << verb;
    EXPECT_TRUE(may("UR", verb, s.lists(7))) << verb;
  }
}

TEST(NatsConfig, NoRoleMayUseMoreThanItNeeds) {
  const contract::Subjects s("prod/shop", "r");
  EXPECT_FALSE(may("UF", "publish", s.load())) << "who takes clients' requests tells no load";
  EXPECT_FALSE(may("UF", "subscribe", s.events("w", 0)));
  EXPECT_FALSE(may("UA", "publish", s.load()));
  EXPECT_FALSE(may("UA", "publish", s.lists(1)));
  EXPECT_FALSE(may("UA", "subscribe", s.events("w", 0))) << "an agent hears no other agent";
  EXPECT_FALSE(may("UA", "subscribe", s.returns("r")));
  EXPECT_FALSE(may("UR", "publish", s.events("w", 0))) << "a router cannot pass for an agent";
  EXPECT_FALSE(may("UR", "publish", s.replies("r"))) << "a router cannot pass for an agent";
  for (const char* key : {"UF", "UR", "UA"}) {
    for (const char* verb : {"publish", "subscribe"}) {
      EXPECT_FALSE(may(key, verb, contract::Subjects("prod/other", "r").members()));
      EXPECT_FALSE(may(key, verb, contract::Subjects("other/shop", "r").members()));
      EXPECT_FALSE(may(key, verb, ">"));
      EXPECT_FALSE(may(key, verb, "_INBOX.x"));
      EXPECT_FALSE(may(key, verb, "$SYS.REQ.SERVER.PING"));
    }
  }
}

TEST(Nats, OneServerStandsAlone) {
  const auto objects = nats_objects(test::render_input_of(test::small_spec()), kKeys);
  const Value set = test::find(objects, "StatefulSet", "shop-nats");
  EXPECT_EQ(set.at({"spec", "replicas"}).integer(), 1);
  EXPECT_TRUE(test::of_kind(objects, "PodDisruptionBudget").empty());
  EXPECT_TRUE(test::container_of(set, "nats")["lifecycle"].is_null());
  const Value map = test::find(objects, "ConfigMap", "shop-nats");
  EXPECT_EQ(map.at({"data", "nats.conf"}).text().find("cluster"), std::string::npos);
}

TEST(Nats, ThreeServersKnowEachOtherAndLeaveOneByOne) {
  crd::Spec spec = test::small_spec();
  spec.nats.managed = crd::ManagedNats{.replicas = 3, .image = "own:1", .resources = {}};
  const auto objects = nats_objects(test::render_input_of(spec), kKeys);
  const Value set = test::find(objects, "StatefulSet", "shop-nats");
  EXPECT_EQ(set.at({"spec", "replicas"}).integer(), 3);
  const Value container = test::container_of(set, "nats");
  EXPECT_EQ(container["image"].text(), "own:1");
  EXPECT_EQ(test::joined(container.at({"lifecycle", "preStop", "exec", "command"})),
            "nats-server --signal ldm=/var/run/nats/nats.pid");
  EXPECT_EQ(test::of_kind(objects, "PodDisruptionBudget").size(), 1U);
  const std::string config = nats_cluster_config(kOwner, "0a");
  for (const char* server : {"shop-nats-0", "shop-nats-1", "shop-nats-2"}) {
    const std::string url =
        "nats-route://cluster:0a@" + std::string(server) + ".shop-nats-servers.prod.svc:6222";
    EXPECT_NE(config.find(url), std::string::npos) << url;
  }
}

TEST(Nats, AnotherConfigurationReplacesItsPods) {
  const RenderInput input = test::render_input_of(test::small_spec());
  const auto digest = [&](const NatsKeys& keys) {
    const Value set = test::find(nats_objects(input, keys), "StatefulSet", "shop-nats");
    return std::string(
        set.at({"spec", "template", "metadata", "annotations", kConfigAnnotation}).text());
  };
  EXPECT_EQ(digest(kKeys), digest(kKeys));
  EXPECT_NE(digest(kKeys), digest({.frontend = "UF", .router = "UX", .agent = "UA"}));
}

TEST(Nats, NothingIsMadeBesideAnExternalOne) {
  crd::Spec spec = test::small_spec();
  spec.nats.external.emplace();
  EXPECT_TRUE(nats_objects(test::render_input_of(spec), kKeys).empty());
}

}  // namespace
}  // namespace sightline::desired
