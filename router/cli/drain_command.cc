// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/contract/names.h"
#include "common/runtime/token_file.h"

#include "router/cli/admin_ports.h"
#include "router/cli/commands.h"

namespace sightline::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

constexpr char kIntroduction[] =
    R"(sightline drain: makes routers send an agent's engines no new requests.

It sends POST /drain with the first token of the file to the agent's admin port. It waits until the
engines run no request, and prints the answer. The exit code is 0 if the engines have no requests
left, else 1. As the preStop hook of an engine, it keeps the engine running until then. An engine
stays drained until it or the agent restarts.

  sightline drain --token-file /etc/sightline/drain/token --timeout 60s

)";

// The agent itself answers at the end of the timeout. This is the time for its answer to arrive.
constexpr milliseconds kGrace{10'000};

struct DrainSettings {
  std::string admin = "http://127.0.0.1:9090";
  std::string token_file;
  milliseconds timeout{30'000};
};

contract::SettingTable drain_table(DrainSettings& s) {
  contract::SettingTable table;
  table.add_text({"drain.admin", "admin", "URL", "Admin port of the agent, http://HOST[:PORT]."},
                 s.admin);
  table.add_text({"drain.token_file", "token-file", "FILE",
                  "The agent's admin.token_file, or a file with one of its tokens. The first token "
                  "in the file is sent."},
                 s.token_file);
  table.add_duration({"drain.timeout", "timeout", "TIME",
                      "How long running requests may continue. Whole seconds."},
                     s.timeout, {1s, 1h});
  return table;
}

Result<std::string> token_of(const std::string& file) {
  if (file.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "drain.token_file is not set. Set --token-file");
  }
  return SL_TRY(runtime::TokenFile::open(file, system_clock()))->first();
}

std::string drain_path(milliseconds timeout) {
  // The agent takes whole seconds. Rounding up gives the engines at least the requested time.
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  return std::string(contract::kDrainPath) + "?timeout=" + std::to_string(seconds);
}

}  // namespace

int drain_command(const Invocation& invocation) {
  const command::Command command{"sightline drain", kIntroduction};
  DrainSettings settings;
  contract::SettingTable table = drain_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto ports = parse_admin_ports(settings.admin);
  if (!ports.ok()) return fail(command, ports.error().message, 2);
  if (ports->size() > 1) return fail(command, "--admin must name one admin port", 2);
  const auto token = token_of(settings.token_file);
  if (!token.ok()) return fail(command, token.error().message, 2);
  const auto leveled = start_log("error");
  if (!leveled.ok()) return fail(command, leveled.error().message, 2);
  AdminPorts admin;
  const AdminPort& port = ports->front();
  const AdminAnswer answer =
      admin.post(port, drain_path(settings.timeout), *token, settings.timeout + kGrace);
  if (answer.status == 0) return fail(command, port.name + ": " + answer.trouble, 1);
  std::printf("%s\n", answer.body.c_str());
  // The agent answers with another status if requests still run at the end.
  return answer.status == 200 ? 0 : 1;
}

}  // namespace sightline::cli
