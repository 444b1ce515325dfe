// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "operator/kube/config/api_connection.h"

namespace sightline::config {

// The most bytes of a kubeconfig file.
inline constexpr std::size_t kKubeconfigBytesMax = 4 << 20;

// A context: the name of a cluster, a user and a namespace.
struct Context {
  std::string cluster;
  std::string user;
  std::string name_space;
};

// The content of kubeconfig files, by name.
struct Kubeconfig {
  // A cluster.
  struct Entry {
    Cluster cluster;
    // Why it cannot be used. Empty: it can.
    std::string problem;
  };
  // A user.
  struct Identity {
    User user;
    // See Entry.
    std::string problem;
  };
  std::map<std::string, Entry> clusters;
  std::map<std::string, Identity> users;
  std::map<std::string, Context> contexts;
  // Empty: the files name no context.
  std::string current_context;
};

// Parses a kubeconfig file. Relative paths start at `directory`. Ignores unknown fields. Errors:
// InvalidArgument with the line, never with a value that may be secret. Pure.
Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::string& directory);

// Adds the entries of `second` that `first` does not have: the first file wins.
void merge(Kubeconfig& first, const Kubeconfig& second);

// The connection of a context. Empty: of the current context. Errors: InvalidArgument that names
// the missing or unusable part.
Result<Connection> connection_of(const Kubeconfig& kubeconfig, const std::string& context);

// Reads files separated by ':', as in KUBECONFIG. Ignores missing files, but at least one must
// exist. An error names the file.
Result<Kubeconfig> read_kubeconfigs(std::string_view paths);

}  // namespace sightline::config
