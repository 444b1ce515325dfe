// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/pushed_settings.h"

#include <gtest/gtest.h>

namespace sightline::push {
namespace {

TEST(PushedSettings, ReachReadersAndListenersOnce) {
  runtime::Metrics metrics;
  std::vector<std::string> levels;
  LiveSettings live(
      {},
      {.origins = {{"log.level", "flag --log-level"}},
       .on_change = [&](const contract::ServeSettings& now) { levels.push_back(now.log.level); },
       .metrics = metrics});
  const auto before = live.values().read();
  const auto answer = live.put({.body = R"({"settings":{"log.level":"warn"}})"});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, R"({"changed":[{"name":"log.level","before":"info","after":"warn"}],)"
                         R"("pushed":["log.level"]})");
  EXPECT_EQ(before->log.level, "info") << "a snapshot does not change under its reader";
  EXPECT_EQ(live.values().read()->log.level, "warn");
  EXPECT_EQ(levels, std::vector<std::string>{"warn"});
  EXPECT_NE(live.get().body.find(R"({"name":"log.level","value":"warn","origin":"push")"),
            std::string::npos);
  ASSERT_EQ(live.put({.body = R"({"settings":{}})"}).status, 200);
  EXPECT_EQ(live.values().read()->log.level, "info");
  EXPECT_NE(live.get().body.find(R"("value":"info","origin":"flag --log-level")"),
            std::string::npos);
}

TEST(PushedSettings, RefusedPushChangesNothing) {
  runtime::Metrics metrics;
  LiveSettings live(
      {}, {.origins = {}, .on_change = [](const auto&) { ADD_FAILURE(); }, .metrics = metrics});
  const auto answer =
      live.put({.body = R"({"settings":{"routing.policy":"random","server.port":1}})"});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(live.put({.body = std::string(contract::kSettingsBytesMax + 1, ' ')}).status, 413);
  EXPECT_EQ(live.values().read()->routing.policy, contract::Policy::Kv);
  EXPECT_NE(
      metrics.scrape().find("sightline_pushes_total{what=\"settings\",result=\"malformed\"} 2\n"),
      std::string::npos);
}

}  // namespace
}  // namespace sightline::push
