// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

// The address of the API server and the identity of this process. Values only.
namespace sightline::config {

// A certificate or key: in a file that may change, or as text. Both empty: there is no PEM.
struct Pem {
  std::string file;
  std::string text;

  [[nodiscard]] bool is_given() const { return !file.empty() || !text.empty(); }
};

// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  // Added to the environment of this process.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string install_hint;
  bool wants_cluster = false;
  // interactiveMode is Always, which this process cannot offer.
  bool needs_terminal = false;
};

// How to reach an API server.
struct Cluster {
  // "https://host:port", without a slash at the end of a path.
  std::string server;
  // Empty: the host of `server`.
  std::string tls_server_name;
  // The server's certificate is not checked.
  bool is_insecure = false;
  // The authority of the server's certificate. Not given: the system's authorities.
  Pem authority;
};

// Who this process is.
struct User {
  Pem certificate;
  Pem key;
  std::string token;
  // Used in preference to `token`.
  std::string token_file;
  std::optional<ExecPlugin> exec;
  // Impersonation. Empty: no impersonation.
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
};

// An API server and an identity.
struct Connection {
  Cluster cluster;
  User user;
  std::string name_space = "default";
};

// Where Kubernetes puts the files of a pod's service account.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// The connection of a pod: the values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and
// the directory of its service account. Only the namespace file is read here. Errors:
// InvalidArgument.
Result<Connection> in_cluster(std::string_view host, std::string_view port,
                              const std::string& directory);

}  // namespace sightline::config
