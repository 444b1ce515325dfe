// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/client/api_client.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "operator/kube/object/metadata.h"
#include "tests/fakes/fake_api_server.h"

namespace sightline::client {
namespace {

const object::Resource kApps{"apps", "v1", "deployments", "Deployment"};

void make(fakes::FakeApiServer& server, int count) {
  for (int i = 0; i < count; ++i) {
    object::Value object;
    object.set({"metadata", "namespace"}, "s");
    object.set({"metadata", "name"}, "a" + std::to_string(i));
    EXPECT_TRUE(server.create(kApps, object).ok());
  }
}

std::set<std::string> names_of(const Answer<List>& list) {
  std::set<std::string> names;
  if (!list.ok()) return names;
  for (const auto& object : list->items) names.insert(object::key_of(object).name);
  EXPECT_EQ(names.size(), list->items.size()) << "none twice";
  return names;
}

TEST(ListAll, ListsAllPagesAtTheVersionOfTheFirst) {
  fakes::FakeApiServer server;
  make(server, 7);
  const std::string version = std::to_string(server.version());
  const auto all = list_all(server, kApps, {.limit = 3});
  EXPECT_EQ(names_of(all).size(), 7U);
  EXPECT_EQ(all->resource_version, version);
  EXPECT_TRUE(all->continue_from.empty());
  std::size_t lists = 0;
  for (const auto& call : server.calls()) lists += call.verb == "list";
  EXPECT_EQ(lists, 3U);
}

TEST(ListAll, BeginsOnceMoreInOnePieceWhenThePagesExpire) {
  fakes::FakeApiServer server;
  make(server, 7);
  std::size_t lists = 0;
  server.before = [&](const fakes::Call& call) -> std::optional<Failure> {
    if (call.verb != "list" || ++lists != 2) return std::nullopt;
    return fakes::api_failure(Reason::Expired, "too old");
  };
  const auto all = list_all(server, kApps, {.limit = 3});
  EXPECT_EQ(names_of(all).size(), 7U);
  EXPECT_EQ(lists, 3U);
}

TEST(ListAll, FailsAsAPageDoes) {
  fakes::FakeApiServer server;
  make(server, 7);
  std::size_t lists = 0;
  server.before = [&](const fakes::Call& call) -> std::optional<Failure> {
    if (call.verb != "list" || ++lists != 2) return std::nullopt;
    return fakes::api_failure(Reason::ServiceUnavailable, "busy");
  };
  EXPECT_TRUE(failed(list_all(server, kApps, {.limit = 3}), Reason::ServiceUnavailable));
}

}  // namespace
}  // namespace sightline::client
