// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <unistd.h>

#include "common/base/authority.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/contract/load_settings.h"
#include "common/runtime/memory_keeper.h"
#include "common/runtime/shutdown.h"

#include "router/apps/serve_app.h"
#include "router/cli/commands.h"
#include "router/process/memory_plan.h"
#include "router/process/open_files.h"
#include "router/workers/fleet/config_watch.h"

namespace sightline::cli {
namespace {

constexpr char kIntroduction[] =
    R"(sightline serve: routes OpenAI requests to the engine that has cached their KV blocks.

Settings come from flags, then SIGHTLINE_* variables, then the YAML file of --config, then
defaults. --print-config shows the result and the source of each value. A worker needs only its URL.
The router reads the event endpoints and the block size from the engine. Values that you set win.

)";

// Returns the workers of flags, environment and the given content of the configuration file.
apps::ReadWorkers workers_reader(const Invocation& invocation) {
  return [invocation](std::string file) -> Result<std::vector<contract::WorkerSpec>> {
    contract::ServeSettings settings;
    contract::SettingTable table = contract::serve_table(settings);
    const contract::SettingSources sources{
        invocation.arguments, invocation.environment,
        [&file](const std::string&) -> Result<std::string> { return file; }};
    const auto loaded = SL_TRY(contract::load_settings(table, sources));
    // A file with invalid records is refused: a running process keeps its present list.
    if (!loaded.left_out.empty()) {
      return client_error(ErrorCode::InvalidArgument, loaded.left_out.front());
    }
    SL_TRY(contract::check_agents(settings.workers, settings.nats));
    return settings.workers;
  };
}

}  // namespace

int serve_command(const Invocation& invocation) {
  Shutdown shutdown;
  const command::Command command{"sightline serve", kIntroduction, fleet::read_config_file};
  contract::ServeSettings settings;
  contract::SettingTable table = contract::serve_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto checked = contract::check_serve_settings(settings, !begun.config_file.empty());
  if (!checked.ok()) return fail(command, checked.error().message, 2);
  const auto logging = start_log(settings.log.level, settings.log.format);
  if (!logging.ok()) return fail(command, logging.error().message, 2);
  runtime::tune_allocator();
  command::tell_left_out(begun);
  const std::size_t open_files = process::raise_open_files();
  const process::OpenFilesPlan plan = process::plan_open_files(
      open_files, settings, apps::threads_or_cores(settings.server.io_threads));
  process::tell_plan(open_files, plan, settings);
  const process::MemoryPlan memory = process::plan_memory(settings, process::machine_memory());
  process::tell_memory(memory, settings);

  const std::string host = settings.server.host;
  const std::string admin_host = settings.admin.host;
  auto app = apps::ServeApp::create({settings, contract::origins_of(table), begun.config_file,
                                     workers_reader(invocation), plan, memory});
  if (!app.ok()) return fail(command, app.error().message, 1);
  LineWriter out({.fd = STDOUT_FILENO, .thread_name = "sl-out"});
  const auto url = [](const std::string& at, std::uint16_t port) {
    return "http://" + authority(at, port);
  };
  const std::string admin = " (admin " + url(admin_host, (*app)->admin_port()) + ")\n";
  const auto port = (*app)->port();
  const auto selection_port = (*app)->selection_port();
  const std::string selection = selection_port ? url(settings.selection.host, *selection_port) : "";
  if (port && selection_port) out.write("selection: " + selection + "\n");
  out.write("ready: " + (port ? url(host, *port) + "/v1" : selection) + admin);
  if (!begun.config_file.empty()) shutdown.on_hangup([&app] { (*app)->reread_config(); });
  shutdown.on_stop("serve", [&app] { (*app)->stop(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::cli
