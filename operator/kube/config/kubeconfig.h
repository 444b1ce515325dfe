// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "operator/kube/config/connection.h"

namespace sightline::config {

inline constexpr std::size_t kKubeconfigBytesMax = 4 << 20;

struct Context {
  std::string cluster;
  std::string user;
  std::string name_space;
};

// What kubeconfig files say, by name.
struct Kubeconfig {
  struct Entry {
    Cluster cluster;
    std::string problem;  // why it cannot be used; empty: it can
  };
  struct Identity {
    User user;
    std::string problem;
  };
  std::map<std::string, Entry> clusters;
  std::map<std::string, Identity> users;
  std::map<std::string, Context> contexts;
  std::string current_context;
};

// Relative paths are those from `directory`. Fields that we do not know are left out. Errors:
// InvalidArgument, with the line; never holds a value that may be secret. Pure.
Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::string& directory);

// Whoever says a thing first, is right.
void merge(Kubeconfig& first, const Kubeconfig& second);

// The connection of a context; empty: of the current one. Errors: InvalidArgument that names what
// is missing or cannot be used.
Result<Connection> connection_of(const Kubeconfig& kubeconfig, const std::string& context);

// Of files separated by ':', as in KUBECONFIG; those that do not exist are left out, but one must.
Result<Kubeconfig> read_kubeconfigs(std::string_view paths);

}  // namespace sightline::config
