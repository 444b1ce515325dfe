// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/live_settings.h"

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

Result<PushedSettings> push(const std::string& settings, const ServeSettings& before = {}) {
  return push_settings({}, before, R"({"settings":)" + settings + "}");
}

TEST(LiveSettings, AreSettingsOfTheTableWithOneValueEach) {
  ServeSettings settings;
  const SettingTable table = serve_table(settings);
  for (const std::string_view path : live_settings()) {
    const auto row = std::find_if(table.rows().begin(), table.rows().end(),
                                  [&](const Setting& r) { return r.text.path == path; });
    ASSERT_NE(row, table.rows().end()) << path;
    EXPECT_FALSE(row->is_repeatable()) << path;
  }
  for (const Setting& row : table.rows()) EXPECT_FALSE(why_not_live(row.text.path).empty());
}

TEST(LiveSettings, PushChangesNamedSettingsAndReturnsTheDifference) {
  const auto next = push(R"({"routing.policy":"round-robin","routing.overlap_credit":0.5,
                             "media.fetch_timeout":"3s","media.images_max":64})");
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next->settings.routing.policy, Policy::RoundRobin);
  EXPECT_EQ(next->settings.routing.overlap_credit, 0.5);
  EXPECT_EQ(next->settings.media.fetch_timeout, milliseconds(3000));
  EXPECT_EQ(next->pushed.size(), 4U);
  ASSERT_EQ(next->changes.size(), 3U);
  EXPECT_EQ(next->changes[0].path, "media.fetch_timeout");
  EXPECT_EQ(next->changes[1].path, "routing.policy");
  EXPECT_EQ(next->changes[1].before, "kv");
  EXPECT_EQ(next->changes[1].after, "round-robin");
}

TEST(LiveSettings, PushRestoresStartValuesOfUnnamedSettings) {
  const auto first = push(R"({"routing.policy":"random","routing.host_credit":2})");
  ASSERT_TRUE(first.ok());
  const auto second = push(R"({"routing.host_credit":2})", first->settings);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->settings.routing.policy, Policy::Kv);
  ASSERT_EQ(second->changes.size(), 1U);
  EXPECT_EQ(second->changes[0].after, "kv");
  EXPECT_TRUE(push("{}").ok());
}

TEST(LiveSettings, APushIsRefusedAsAWholeAndNamesEveryProblem) {
  const auto wrong = push(R"({"routing.policy":"sometimes","server.port":1,"routing.polcy":"kv",
      "identity.key_file":"/etc/passwd","media.allow_private_addresses":true,"workers":"url=x",
      "routing.host_credit":[1]})");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::InvalidArgument);
  for (const char* part :
       {"nothing was changed", "routing.policy: 'sometimes'", "server.port cannot change",
        "\"routing.polcy\" is not a setting (did you mean 'routing.policy'?)",
        "identity.key_file cannot change while the process runs: a push must not name files",
        "media.allow_private_addresses cannot change", "PUT /v1/workers",
        "routing.host_credit: must be a string"}) {
    EXPECT_NE(wrong.error().message.find(part), std::string::npos) << part << "\n"
                                                                   << wrong.error().message;
  }
}

TEST(LiveSettings, BodiesThatAreNoPushAreRefused) {
  const std::string many = [] {
    std::string text = "{";
    for (int i = 0; i < 20; ++i) text += (i == 0 ? "" : ",") + ("\"x" + std::to_string(i)) + "\":1";
    return text + "}";
  }();
  const auto named = push(many);
  ASSERT_FALSE(named.ok());
  EXPECT_NE(named.error().message.find("and 12 more"), std::string::npos) << named.error().message;
  for (const char* body : {"", "[]", "{}", R"({"settings":[]})", R"({"settings":{},"more":1})",
                           R"({"settings":{"routing.policy":"kv","routing.policy":"random"}})"}) {
    EXPECT_FALSE(push_settings({}, {}, body).ok()) << body;
  }
  const auto large = push_settings({}, {}, std::string(kSettingsBytesMax + 1, ' '));
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::TooLarge);
}

TEST(LiveSettings, AllAreListedWithValueAndOrigin) {
  ServeSettings settings;
  settings.routing.policy = Policy::Random;
  settings.model.served_names = {"a", "b"};
  const std::string json =
      settings_json(settings, {{"server.port", "flag --port"}}, {"routing.policy"});
  for (const char* part :
       {R"({"name":"server.port","value":8000,"origin":"flag --port","live":false,)",
        R"({"name":"routing.policy","value":"random","origin":"push","live":true,)",
        R"("name":"model.served_names","value":["a","b"],"origin":"default")",
        R"("name":"routing.tie_tolerance_ratio","value":0.02,)"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

}  // namespace
}  // namespace sightline::contract
