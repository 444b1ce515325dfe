// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/check_command.h"

#include <cstdio>
#include <stop_token>

#include "common/base/log.h"
#include "common/command/command.h"
#include "common/runtime/metrics.h"

#include "operator/installation/installation_check.h"
#include "operator/kube/config/api_credentials.h"
#include "operator/kube/https/https_transport.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/manager/connect.h"
#include "operator/manager/operator_settings.h"

namespace sightline::manager {
namespace {

constexpr char kIntroduction[] =
    R"(sightline-operator check: is the operator installed, and does it act?

Waits until the API server has the kind MultimodalRouter and an operator renews its Lease. Prints
each result as a line. 'helm test' runs this command with the operator's rights.

  sightline-operator check --kubeconfig ~/.kube/config --lease-namespace sightline-system

Settings come from flags, then SIGHTLINE_* variables, then defaults.

)";

// For one call, because the whole check may have to repeat calls.
constexpr std::chrono::seconds kCallTimeout{10};

Result<Done> check(const CheckSettings& settings, const command::Invocation& invocation) {
  SL_TRY(check_namespaces(settings.kube.name_spaces));
  const auto connection = SL_TRY(connection_for(settings.kube, invocation.environment));
  config::Credentials credentials(connection, system_clock());
  const std::stop_source stop;
  https::HttpsTransport transport(https_options(connection), credentials, system_clock(),
                                  stop.get_token());
  runtime::Metrics metrics;
  rest::RestOptions rest;
  rest.user_agent = user_agent("check");
  rest.host = connection.cluster.server;
  rest.call_timeout = kCallTimeout;
  rest.pause = rest::stoppable_pause(stop.get_token());
  rest::RestClient api(rest, transport, system_clock(), metrics);
  installation::CheckOptions options;
  options.name_spaces = settings.kube.name_spaces;
  if (settings.election.is_on) options.lease = lease_of(settings.election, connection);
  options.time_max = settings.time_max;
  return installation::check_installation(options, {.api = api,
                                                    .clock = system_clock(),
                                                    .pause = rest.pause,
                                                    .said = [](const std::string& line) {
                                                      std::printf("%s\n", line.c_str());
                                                      std::fflush(stdout);
                                                    }});
}

}  // namespace

int check_command(const command::Invocation& invocation) {
  const command::Command command{"sightline-operator check", kIntroduction};
  CheckSettings settings;
  contract::SettingTable table = check_table(settings);
  const command::StartResult begun = begin(command, invocation, table);
  if (begun.status) return *begun.status;
  const auto logging = start_log(settings.log.level, settings.log.format);
  if (!logging.ok()) return fail(command, logging.error().message, 2);
  const auto checked = check(settings, invocation);
  return checked.ok() ? 0 : fail(command, checked.error().message, 1);
}

}  // namespace sightline::manager
