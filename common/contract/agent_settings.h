// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/contract/setting_table.h"
#include "common/contract/worker_spec.h"

namespace sightline::contract {

// All settings of `sightline agent`. They mean the same as for `sightline serve`.
struct AgentSettings {
  AdminSettings admin;
  // Whether GET /drain also drains, without a token.
  bool drain_by_get = false;
  ModelNameSettings model;
  IdentitySettings identity;
  EventSettings events;
  // An agent uses only the settings of probes.
  FleetSettings fleet;
  NatsSettings nats;
  // Without stale_after.
  ReplicaSettings replica;
  LogSettings log;
  // The workers of all sources. Of equal names, the strongest source's.
  std::vector<WorkerSpec> workers;
};

// The table of all settings, bound to `settings`, which must outlive it.
SettingTable agent_table(AgentSettings& settings);

// Checks relations between settings: there are NATS servers, a model directory, and a worker or a
// configuration file that may bring one. Errors: InvalidArgument that names the settings and how to
// give them.
Result<Done> check_agent_settings(const AgentSettings& settings, bool has_config_file);

}  // namespace sightline::contract
