// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/process_settings.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/contract/serve_settings.h"

namespace sightline::contract {
namespace {

TEST(ProcessSettings, EveryProgramThatAddsThemHasTheSameFlagsAndDefaults) {
  SettingTable shared;
  AdminSettings admin;
  IdentitySettings identity;
  EventSettings events;
  FleetSettings fleet;
  LogSettings log;
  std::vector<WorkerSpec> workers;
  add_admin(shared, admin);
  add_identity(shared, identity);
  add_events(shared, events);
  add_fleet(shared, fleet);
  add_log(shared, log);
  add_worker_list(shared, workers);
  ServeSettings settings;
  const SettingTable serve = serve_table(settings);
  std::set<std::string> rows;
  for (const Setting& row : serve.rows()) rows.insert(row.text.flag + " " + row.default_text);
  ASSERT_FALSE(shared.rows().empty());
  for (const Setting& row : shared.rows()) {
    EXPECT_TRUE(rows.contains(row.text.flag + " " + row.default_text)) << row.text.flag;
  }
}

}  // namespace
}  // namespace sightline::contract
