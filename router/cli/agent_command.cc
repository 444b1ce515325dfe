// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <unistd.h>

#include "common/base/authority.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/contract/agent_settings.h"
#include "common/contract/load_settings.h"
#include "common/runtime/shutdown.h"

#include "router/apps/agent_app.h"
#include "router/cli/commands.h"
#include "router/process/open_files.h"
#include "router/workers/fleet/config_watch.h"

namespace sightline::cli {
namespace {

constexpr char kIntroduction[] =
    R"(sightline agent: reads the KV events of engines and forwards them to routers over NATS.

It runs beside one engine, or reads several engines. Routers subscribe to it instead of the engine
if the worker has agent=true. Any number of routers can do so, and all receive the same events.
--nats and --model-path are required. Scope, revision, model, served model name and identity key
must be the same as in the routers.

  sightline agent --nats nats://127.0.0.1:4222 --model-path DIR --served-model-name m \
    --worker name=w0,url=http://127.0.0.1:8101
  sightline serve --nats nats://127.0.0.1:4222 --model-path DIR --served-model-name m \
    --worker name=w0,url=http://127.0.0.1:8101,agent=true --admin-port 9091

The admin port serves /healthz, /readyz, /metrics, /v1/workers and POST /drain?timeout=SECONDS.
POST /drain makes routers send the workers no new requests, and answers when the workers run no
request. It needs a token from --admin-token-file.

Settings come from flags, then SIGHTLINE_* variables, then the YAML file of --config, then
defaults. --print-config shows the result and the source of each value. A worker needs only its URL.
The agent reads the event endpoints and the block size from the engine. Values that you set win.

)";

// Returns the workers of flags, environment and the given content of the configuration file.
Result<std::vector<contract::WorkerSpec>> workers_of(const Invocation& invocation,
                                                     const std::string& file) {
  contract::AgentSettings settings;
  contract::SettingTable table = contract::agent_table(settings);
  const contract::SettingSources sources{
      invocation.arguments, invocation.environment,
      [&file](const std::string&) -> Result<std::string> { return file; }};
  const auto loaded = SL_TRY(contract::load_settings(table, sources));
  // A file with invalid records is refused: a running process keeps its present list.
  if (!loaded.left_out.empty()) {
    return client_error(ErrorCode::InvalidArgument, loaded.left_out.front());
  }
  return settings.workers;
}

}  // namespace

int agent_command(const Invocation& invocation) {
  Shutdown shutdown;
  const command::Command command{"sightline agent", kIntroduction, fleet::read_config_file};
  contract::AgentSettings settings;
  contract::SettingTable table = contract::agent_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto checked = contract::check_agent_settings(settings, !begun.config_file.empty());
  if (!checked.ok()) return fail(command, checked.error().message, 2);
  const auto logging = start_log(settings.log.level, settings.log.format);
  if (!logging.ok()) return fail(command, logging.error().message, 2);
  command::tell_left_out(begun);
  process::raise_open_files();

  const std::string admin_host = settings.admin.host;
  auto app =
      apps::AgentApp::create({settings, begun.config_file, [&invocation](const std::string& file) {
                                return workers_of(invocation, file);
                              }});
  if (!app.ok()) return fail(command, app.error().message, 1);
  LineWriter out({.fd = STDOUT_FILENO, .thread_name = "sl-out"});
  out.write("ready: admin http://" + authority(admin_host, (*app)->admin_port()) + "\n");
  if (!begun.config_file.empty()) shutdown.on_hangup([&app] { (*app)->reread_config(); });
  shutdown.on_stop("agent", [&app] { (*app)->stop(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::cli
