// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/operator_command.h"

#include <atomic>
#include <cstdio>

#include <unistd.h>

#include "common/base/authority.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/command/command.h"
#include "common/runtime/shutdown.h"

#include "operator/manager/check_command.h"
#include "operator/manager/operator_app.h"
#include "operator/manager/operator_settings.h"

namespace sightline::manager {
namespace {

constexpr char kIntroduction[] =
    R"(sightline-operator: makes what the MultimodalRouters of a cluster ask for.

It makes the frontends, routers, workers and NATS servers of each object, all with one block size,
hash seed and transfer mode. It moves from one revision to the next without losing a request, and
writes the observed state into the object's status. In a pod it needs only images. Elsewhere it
also needs a kubeconfig:

  sightline-operator --kubeconfig ~/.kube/config --router-image IMAGE --nats-image IMAGE

Several operators may run. Only the holder of a Lease acts. The admin port serves /healthz, /readyz
and /metrics. 'sightline-operator check' checks whether an operator is installed and acts. It has
its own --help.

Settings come from flags, then SIGHTLINE_* variables, then defaults. --print-config shows each value
and where it came from.

)";

}  // namespace

int operator_command(const command::Invocation& invocation) {
  // Before any thread starts, so all threads inherit the blocked signals.
  Shutdown shutdown;
  const command::Command command{"sightline-operator", kIntroduction};
  if (!invocation.arguments.empty() && invocation.arguments.front() == "--version") {
    std::printf("sightline-operator %s\n", SL_VERSION);
    return 0;
  }
  if (!invocation.arguments.empty() && invocation.arguments.front() == "check") {
    command::Invocation rest = invocation;
    rest.arguments.erase(rest.arguments.begin());
    return check_command(rest);
  }
  OperatorSettings settings;
  contract::SettingTable table = operator_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto logging = start_log(settings.log.level, settings.log.format);
  if (!logging.ok()) return fail(command, logging.error().message, 2);

  std::atomic<bool> is_lost{false};
  auto app = OperatorApp::create(
      {.settings = settings, .environment = invocation.environment, .on_lost = [&] {
         is_lost = true;
         shutdown.request();
       }});
  if (!app.ok()) return fail(command, app.error().message, 1);
  LineWriter out({.fd = STDOUT_FILENO, .thread_name = "sl-out"});
  out.write("ready: admin http://" + authority(settings.admin.host, (*app)->admin_port()) + "\n");
  shutdown.on_stop("operator", [&app] { (*app)->stop(); });
  shutdown.wait();
  return is_lost ? 1 : 0;
}

}  // namespace sightline::manager
