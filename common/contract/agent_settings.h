// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/contract/setting_table.h"
#include "common/contract/worker_spec.h"

namespace sightline::contract {

// Every setting of `sightline agent`: they mean what they mean for `sightline serve`.
struct AgentSettings {
  AdminSettings admin;
  bool drain_by_get = false;  // GET /drain drains too, without a token
  ModelNameSettings model;
  IdentitySettings identity;
  EventSettings events;
  FleetSettings fleet;  // of it what probes need
  NatsSettings nats;
  ReplicaSettings replica;  // without stale_after
  LogSettings log;
  std::vector<WorkerSpec> workers;  // of all sources; of the same name the strongest source's
};

// The table of all settings, bound to `settings`, which must outlive it.
SettingTable agent_table(AgentSettings& settings);

// Relations that no single setting can check: NATS and a model directory are named, some worker can
// come. Errors: InvalidArgument, naming the settings and how to give them.
Result<Done> check_agent_settings(const AgentSettings& settings, bool has_config_file);

}  // namespace sightline::contract
