// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

// Where the API server is and who we are to it. Values only.
namespace sightline::config {

// A certificate or key: in a file that may change, or as it is. Neither: there is none.
struct Pem {
  std::string file;
  std::string text;

  [[nodiscard]] bool is_given() const { return !file.empty() || !text.empty(); }
};

// A program that gives credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of ours
  std::string install_hint;
  bool wants_cluster = false;
  bool needs_terminal = false;  // interactiveMode Always: cannot be had here
};

struct Cluster {
  std::string server;           // "https://host:port", without a path's last slash
  std::string tls_server_name;  // empty: the server's host
  bool is_insecure = false;     // the server's certificate is not looked at
  Pem authority;                // of the server; none: those of the system
};

struct User {
  Pem certificate;
  Pem key;
  std::string token;
  std::string token_file;  // outranks token
  std::optional<ExecPlugin> exec;
  // Impersonation; empty: none.
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
};

struct Connection {
  Cluster cluster;
  User user;
  std::string name_space = "default";
};

// Where a pod finds them.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// That of a pod: values of KUBERNETES_SERVICE_HOST and _PORT, and the directory of its service
// account, of which only the namespace is read here. Errors: InvalidArgument.
Result<Connection> in_cluster(std::string_view host, std::string_view port,
                              const std::string& directory);

}  // namespace sightline::config
