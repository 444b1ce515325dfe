// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/runtime/memory_keeper.h"

#include "router/cli/commands.h"
#include "router/process/open_files.h"
#include "simulator/cluster/settings.h"
#include "simulator/cluster/simulate.h"

namespace sightline::cli {
namespace {

constexpr char kIntroduction[] =
    R"(sightline simulate: engines that speak vLLM's HTTP API, KV events and metrics, without a GPU.

Each engine has a prefix cache with vLLM's rules and reports how many tokens of a prompt it found
there. Engine i uses base port + i of each of the three ranges. With --data-parallel-size N it uses
ports base + i*N to base + i*N + N-1 of the event and replay ranges. The command prints one line per
engine, which you can pass to `sightline serve` unchanged, and then "ready".

--fault injects a fault. POST /fault on an engine's port does the same, with the same fields as
JSON. GET /fault lists faults and strikes, DELETE /fault ends the faults. p is the probability (1)
per event message or request. count is the number of strikes after which a fault ends.
request=PREFIX limits a fault to requests whose x-request-id begins with it.
  drop              an event message is not sent, but a replay has it, except with lost=true
  duplicate         an event message is sent twice
  reorder           an event message is sent after the next one
  delay             an event message, and all behind it, is sent ms later (100)
  cut-replay        the next replay loses messages in its middle, and its end marker
  garbage           an event message cannot be decoded. With target=http, an answer is not HTTP
  wrong-block-size  events report smaller blocks until the engine restarts
  restart           the process ends and starts again after ms (0). By POST without p: immediately
  forget            an idle engine loses its cache and never reports it
  die-midstream     the connection ends after `after` events (1) of a streamed answer
  stall             an answer pauses for ms after `after` events. ms=0: until the client leaves
  status500         an answer is a 500
  slow-probe        a GET is answered after ms (3000), as by a busy engine

)";

}  // namespace

int simulate_command(const Invocation& invocation) {
  const command::Command command{"sightline simulate", kIntroduction};
  cluster::SimulateSettings settings;
  contract::SettingTable table = cluster::setting_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto logging = start_log("info");
  if (!logging.ok()) return fail(command, logging.error().message, 2);
  runtime::tune_allocator();
  process::check_open_files(process::raise_open_files(), settings.engines);
  const auto status = cluster::run_simulate(settings);
  if (!status.ok()) {
    return fail(command, status.error().message, status.error().blame == Blame::Client ? 2 : 1);
  }
  return *status;
}

}  // namespace sightline::cli
