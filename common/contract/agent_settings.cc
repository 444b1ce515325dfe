// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/agent_settings.h"

namespace sightline::contract {

SettingTable agent_table(AgentSettings& settings) {
  SettingTable table;
  add_admin(table, settings.admin);
  add_admin_tokens(table, settings.admin);
  table.add_switch({"agent.drain_by_get", "agent-drain-by-get", "",
                    "GET /drain also drains the workers, without a token, for hooks that are not "
                    "changed yet. The next release removes it."},
                   settings.drain_by_get);
  add_model_name(table, settings.model);
  add_identity(table, settings.identity);
  add_events(table, settings.events);
  add_fleet(table, settings.fleet);
  add_nats(table, settings.nats);
  add_replica(table, settings.replica);
  add_log(table, settings.log);
  add_worker_list(table, settings.workers);
  return table;
}

Result<Done> check_agent_settings(const AgentSettings& settings, bool has_config_file) {
  if (settings.nats.urls.empty()) {
    return client_error(
        ErrorCode::InvalidArgument,
        "nats.urls is not set, but an agent publishes to routers over NATS: give --nats "
        "nats://HOST:PORT, SIGHTLINE_NATS or nats.urls in the configuration file");
  }
  SL_TRY(check_model_name(settings.model));
  SL_TRY(check_workers(settings.workers, has_config_file));
  SL_TRY(check_nats(settings.nats));
  return check_replica(settings.replica);
}

}  // namespace sightline::contract
