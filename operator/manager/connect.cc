// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/connect.h"

#include <array>

#include <unistd.h>

#include "common/runtime/entropy.h"

#include "operator/kube/config/kubeconfig.h"

namespace sightline::manager {
namespace {

std::string value_of(const std::map<std::string, std::string>& environment,
                     const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

Result<config::Connection> from_files(const std::string& paths, const std::string& context) {
  const auto kubeconfig = SL_TRY(config::read_kubeconfigs(paths));
  return config::connection_of(kubeconfig, context);
}

}  // namespace

Result<config::Connection> connection_for(const KubeSettings& settings,
                                          const std::map<std::string, std::string>& environment) {
  if (!settings.kubeconfig.empty()) return from_files(settings.kubeconfig, settings.context);
  const std::string named = value_of(environment, "KUBECONFIG");
  if (!named.empty()) return from_files(named, settings.context);
  const std::string host = value_of(environment, "KUBERNETES_SERVICE_HOST");
  if (!host.empty()) {
    return config::in_cluster(host, value_of(environment, "KUBERNETES_SERVICE_PORT"),
                              std::string(config::kServiceAccountDirectory));
  }
  const std::string home = value_of(environment, "HOME");
  auto connection = from_files(home + "/.kube/config", settings.context);
  if (connection.ok()) return connection;
  return client_error(ErrorCode::InvalidArgument,
                      "no API server is known: give --kubeconfig or KUBECONFIG, or run in a pod; " +
                          connection.error().message);
}

std::string identity_of_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "_" + std::to_string(runtime::number_nobody_knows());
}

}  // namespace sightline::manager
