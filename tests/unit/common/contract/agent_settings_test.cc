// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/agent_settings.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

AgentSettings complete() {
  AgentSettings settings;
  settings.nats.urls = "nats://127.0.0.1:4222";
  settings.model.path = "/models/m";
  settings.workers.emplace_back();
  return settings;
}

std::string refusal_of(const AgentSettings& settings, bool has_config_file = false) {
  const auto checked = check_agent_settings(settings, has_config_file);
  return checked.ok() ? "" : checked.error().message;
}

TEST(AgentSettings, AreCompleteWithNatsAModelAndAWorker) { EXPECT_EQ(refusal_of(complete()), ""); }

TEST(AgentSettings, MissingNatsErrorExplainsPurposeAndRemedy) {
  AgentSettings settings = complete();
  settings.nats.urls.clear();
  const std::string refusal = refusal_of(settings);
  EXPECT_NE(refusal.find("nats.urls is not set"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("--nats nats://HOST:PORT"), std::string::npos) << refusal;
}

TEST(AgentSettings, WithoutAModelOrAWorkerTheErrorIsThatOfARouter) {
  AgentSettings settings = complete();
  settings.model.path.clear();
  EXPECT_EQ(refusal_of(settings).find("model.path is not set"), 0U);
  settings = complete();
  settings.workers.clear();
  EXPECT_EQ(refusal_of(settings).find("no worker is configured"), 0U);
  EXPECT_EQ(refusal_of(settings, true), "");
}

TEST(AgentSettings, ThoseOfNatsAndOfTheScopeAreChecked) {
  AgentSettings settings = complete();
  settings.nats.urls = "http://127.0.0.1";
  EXPECT_EQ(refusal_of(settings).find("nats.urls"), 0U);
  settings = complete();
  settings.replica.scope = "one";
  EXPECT_EQ(refusal_of(settings).find("replica.scope"), 0U);
}

TEST(AgentSettings, BlockKeysDependOnTheFirstServedName) {
  ModelNameSettings model;
  EXPECT_EQ(model.scope(), "");
  model.served_names = {"first", "second"};
  EXPECT_EQ(model.scope(), "first");
}

}  // namespace
}  // namespace sightline::contract
