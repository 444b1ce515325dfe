// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/kubeconfig.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "common/base/base64.h"
#include "common/runtime/small_file.h"

namespace sightline::config {
namespace {

// The most entries of a list, and elements of lists in an entry.
constexpr std::size_t kEntriesMax = 10'000;

Error unusable(std::string message) {
  return client_error(ErrorCode::InvalidArgument, "kubeconfig: " + std::move(message));
}

// A scalar member. Empty if it is missing. yaml-cpp throws on a member of anything but a map.
std::string text_of(const YAML::Node& node, const char* name) {
  const YAML::Node member = node.IsMap() ? node[name] : YAML::Node();
  return member.IsDefined() && member.IsScalar() ? member.Scalar() : std::string();
}

bool is_true(const YAML::Node& node, const char* name) { return text_of(node, name) == "true"; }

YAML::Node member_of(const YAML::Node& node, const char* name) {
  const YAML::Node member = node.IsMap() ? node[name] : YAML::Node();
  return member.IsDefined() ? member : YAML::Node();
}

std::vector<std::string> texts_of(const YAML::Node& node, const char* name) {
  std::vector<std::string> texts;
  const YAML::Node list = member_of(node, name);
  if (!list.IsSequence()) return texts;
  for (const YAML::Node& item : list) {
    if (item.IsScalar() && texts.size() < kEntriesMax) texts.push_back(item.Scalar());
  }
  return texts;
}

class ConfigReader {
 public:
  explicit ConfigReader(std::string directory) : directory_(std::move(directory)) {}

  Kubeconfig::Entry cluster(const YAML::Node& node) {
    Kubeconfig::Entry entry;
    Cluster& cluster = entry.cluster;
    cluster.server = text_of(node, "server");
    while (cluster.server.ends_with('/')) cluster.server.pop_back();
    cluster.tls_server_name = text_of(node, "tls-server-name");
    cluster.is_insecure = is_true(node, "insecure-skip-tls-verify");
    cluster.authority = pem(node, "certificate-authority", entry.problem);
    if (cluster.server.empty()) entry.problem = "has no server";
    if (!text_of(node, "proxy-url").empty()) {
      entry.problem =
          "has a proxy-url: proxies are not supported, use a server that needs no proxy";
    }
    return entry;
  }

  Kubeconfig::Identity user(const YAML::Node& node) {
    Kubeconfig::Identity entry;
    User& user = entry.user;
    user.certificate = pem(node, "client-certificate", entry.problem);
    user.key = pem(node, "client-key", entry.problem);
    user.token = text_of(node, "token");
    user.token_file = path_of(text_of(node, "tokenFile"));
    user.as = text_of(node, "as");
    user.as_uid = text_of(node, "as-uid");
    user.as_groups = texts_of(node, "as-groups");
    if (user.certificate.is_given() != user.key.is_given()) {
      entry.problem = "has a client certificate or a client key without the other";
    }
    if (!text_of(node, "username").empty() || !text_of(node, "password").empty()) {
      entry.problem = "has a username or password, which API servers do not accept: use a token";
    }
    if (member_of(node, "auth-provider").IsMap()) {
      entry.problem = "has an auth-provider: use an exec plugin instead";
    }
    // The HTTP library cannot send a header twice.
    if (user.as_groups.size() > 1) entry.problem = "has several as-groups: only one is supported";
    if (member_of(node, "as-user-extra").IsMap()) {
      entry.problem = "has as-user-extra, which is not supported";
    }
    if (const YAML::Node exec = member_of(node, "exec"); exec.IsMap()) user.exec = plugin(exec);
    return entry;
  }

 private:
  std::string path_of(const std::string& path) const {
    if (path.empty() || path.front() == '/') return path;
    return (std::filesystem::path(directory_) / path).string();
  }

  Pem pem(const YAML::Node& node, const std::string& name, std::string& problem) const {
    // The data overrides the file (kubeconfig v1, for example certificate-authority-data).
    const std::string encoded = text_of(node, (name + "-data").c_str());
    if (encoded.empty()) return {.file = path_of(text_of(node, name.c_str())), .text = {}};
    auto text = from_base64(encoded);
    if (!text) problem = "has a " + name + "-data that is not base64";
    return {.file = {}, .text = std::move(text).value_or(std::string())};
  }

  ExecPlugin plugin(const YAML::Node& node) const {
    ExecPlugin plugin;
    plugin.api_version = text_of(node, "apiVersion");
    plugin.command = text_of(node, "command");
    // A shell would find it on PATH, unless it contains a directory.
    if (plugin.command.find('/') != std::string::npos) plugin.command = path_of(plugin.command);
    plugin.arguments = texts_of(node, "args");
    plugin.install_hint = text_of(node, "installHint");
    plugin.wants_cluster = is_true(node, "provideClusterInfo");
    plugin.needs_terminal = text_of(node, "interactiveMode") == "Always";
    const YAML::Node environment = member_of(node, "env");
    if (!environment.IsSequence()) return plugin;
    for (const YAML::Node& item : environment) {
      if (plugin.environment.size() == kEntriesMax) break;
      plugin.environment.emplace_back(text_of(item, "name"), text_of(item, "value"));
    }
    return plugin;
  }

  const std::string directory_;
};

// Calls read(name, member) for each named entry of a list.
template <class Read>
void each(const YAML::Node& root, const char* list, const char* member, Read read) {
  const YAML::Node entries = member_of(root, list);
  if (!entries.IsSequence()) return;
  std::size_t count = 0;
  for (const YAML::Node& entry : entries) {
    const std::string name = text_of(entry, "name");
    if (!name.empty() && ++count <= kEntriesMax) read(name, member_of(entry, member));
  }
}

Kubeconfig kubeconfig_of(const YAML::Node& root, const std::string& directory) {
  ConfigReader reader(directory);
  Kubeconfig out;
  out.current_context = text_of(root, "current-context");
  each(root, "clusters", "cluster", [&](const std::string& name, const YAML::Node& node) {
    out.clusters.emplace(name, reader.cluster(node));
  });
  each(root, "users", "user", [&](const std::string& name, const YAML::Node& node) {
    out.users.emplace(name, reader.user(node));
  });
  each(root, "contexts", "context", [&](const std::string& name, const YAML::Node& node) {
    out.contexts.emplace(
        name, Context{text_of(node, "cluster"), text_of(node, "user"), text_of(node, "namespace")});
  });
  return out;
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::string& directory) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return Kubeconfig{};
    if (!root.IsMap()) return unusable("is not a map");
    return kubeconfig_of(root, directory);
  } catch (const YAML::Exception& error) {
    return unusable("line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

void merge(Kubeconfig& first, const Kubeconfig& second) {
  // insert() keeps the entries of `first`.
  first.clusters.insert(second.clusters.begin(), second.clusters.end());
  first.users.insert(second.users.begin(), second.users.end());
  first.contexts.insert(second.contexts.begin(), second.contexts.end());
  if (first.current_context.empty()) first.current_context = second.current_context;
}

Result<Connection> connection_of(const Kubeconfig& kubeconfig, const std::string& context) {
  const std::string& name = context.empty() ? kubeconfig.current_context : context;
  if (name.empty()) return unusable("has no current-context: set --context");
  const auto chosen = kubeconfig.contexts.find(name);
  if (chosen == kubeconfig.contexts.end()) return unusable("has no context '" + name + "'");
  const auto cluster = kubeconfig.clusters.find(chosen->second.cluster);
  if (cluster == kubeconfig.clusters.end()) {
    return unusable("has no cluster '" + chosen->second.cluster + "', which context '" + name +
                    "' names");
  }
  // A problem counts only in the chosen entry: the file may have entries for other tools.
  if (!cluster->second.problem.empty()) {
    return unusable("cluster '" + cluster->first + "' " + cluster->second.problem);
  }
  Connection connection;
  connection.cluster = cluster->second.cluster;
  if (!chosen->second.name_space.empty()) connection.name_space = chosen->second.name_space;
  if (chosen->second.user.empty()) return connection;
  const auto user = kubeconfig.users.find(chosen->second.user);
  if (user == kubeconfig.users.end()) {
    return unusable("has no user '" + chosen->second.user + "', which context '" + name +
                    "' names");
  }
  if (!user->second.problem.empty()) {
    return unusable("user '" + user->first + "' " + user->second.problem);
  }
  connection.user = user->second.user;
  return connection;
}

Result<Kubeconfig> read_kubeconfigs(std::string_view paths) {
  Kubeconfig all;
  std::size_t found = 0;
  const std::string list(paths);
  while (!paths.empty()) {
    const std::string path(paths.substr(0, paths.find(':')));
    paths.remove_prefix(std::min(path.size() + 1, paths.size()));
    std::error_code error;
    if (path.empty() || !std::filesystem::exists(path, error)) continue;
    auto text = runtime::read_small_file(path, kKubeconfigBytesMax);
    if (!text.ok()) return with_context(std::move(text).error(), path);
    auto one =
        parse_kubeconfig(*text, std::filesystem::absolute(path, error).parent_path().string());
    if (!one.ok()) return with_context(std::move(one).error(), path);
    merge(all, *one);
    ++found;
  }
  if (found == 0) return unusable("these files do not exist: " + list);
  return all;
}

}  // namespace sightline::config
