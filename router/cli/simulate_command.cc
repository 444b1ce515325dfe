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

Each has a prefix cache with vLLM's rules and says how many tokens of a prompt it found there.
Engine i takes base port + i of each of the three ranges; with --data-parallel-size N, ports
base + i*N to base + i*N + N-1 of the event and replay ranges. One line per engine is printed, to be
given to `sightline serve` as it is, then "ready".

Faults are injected by --fault, or by POST /fault on an engine's port with the same fields as JSON;
GET /fault lists what struck, DELETE /fault ends them. p is the chance (1) per event message or per
request, count the number of strikes after which a fault ends, request=PREFIX the only requests
that it strikes, by their x-request-id.
  drop              an event message is not sent, only replayed; lost=true: nor replayed
  duplicate         an event message is sent twice
  reorder           an event message is sent after the next one
  delay             an event message, and all behind it, is sent ms later (100)
  cut-replay        the next replay loses messages in its middle, and its end marker
  garbage           an event message cannot be decoded; target=http: an answer is not HTTP
  wrong-block-size  events tell smaller blocks, until the engine restarts
  restart           the process ends, and begins again after ms (0); by POST without p: at once
  forget            an idle engine has lost its cache and never says so
  die-midstream     the connection ends after so many events of an answer: after (1)
  stall             an answer is silent for ms, after so many events; ms=0: until the client leaves
  status500         an answer is a 500
  slow-probe        a GET is answered after ms (3000), as by an engine that is busy

)";

}  // namespace

int simulate_command(const Invocation& invocation) {
  const command::Command command{"sightline simulate", kIntroduction};
  cluster::SimulateSettings settings;
  contract::SettingTable table = cluster::setting_table(settings);
  const command::Begun begun = begin(command, invocation, table);
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
