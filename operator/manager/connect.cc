// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/connect.h"

#include <algorithm>
#include <array>
#include <set>

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

// A label of RFC 1123.
bool is_label(std::string_view name) {
  constexpr std::size_t kBytesMax = 63;
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kBytesMax && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), is_inner);
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
  return client_error(
      ErrorCode::InvalidArgument,
      "no API server is configured: set --kubeconfig or KUBECONFIG, or run in a pod. " +
          connection.error().message);
}

bool is_ipv6(const config::Connection& connection) {
  return connection.cluster.server.starts_with("https://[");
}

https::HttpsOptions https_options(const config::Connection& connection) {
  https::HttpsOptions options;
  options.server = connection.cluster.server;
  options.tls_server_name = connection.cluster.tls_server_name;
  options.is_insecure = connection.cluster.is_insecure;
  return options;
}

std::string user_agent(std::string_view part) {
  return "sightline-operator/" SL_VERSION " (linux/amd64) " + std::string(part);
}

object::Key lease_of(const ElectionSettings& settings, const config::Connection& connection) {
  const std::string& named = settings.name_space;
  return {named.empty() ? connection.name_space : named, settings.lease};
}

Result<Done> check_namespaces(const std::vector<std::string>& names) {
  const auto wrong = [](const std::string& why) {
    return client_error(ErrorCode::InvalidArgument, "--watch-namespace: " + why);
  };
  if (names.size() > kNamespacesMax) {
    return wrong("more than " + std::to_string(kNamespacesMax) +
                 " namespaces. Leave the flag out to watch all namespaces");
  }
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!is_label(name)) return wrong("'" + name + "' is not a namespace name");
    if (!seen.insert(name).second) return wrong("'" + name + "' is given twice");
  }
  return Done{};
}

std::string identity_of_process() {
  std::array<char, 256> host{};
  // gethostname() may write no end if it cuts the name.
  gethostname(host.data(), host.size() - 1);
  // Two operators on one host need different identities.
  return std::string(host.data()) + "_" + std::to_string(runtime::secure_random_u64());
}

}  // namespace sightline::manager
