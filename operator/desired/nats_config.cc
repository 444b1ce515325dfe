// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/nats_config.h"

#include <initializer_list>

namespace sightline::desired {
namespace {

// The largest message: the default of NATS, for which agents cut their messages.
constexpr std::int64_t kPayloadBytesMax = 1 << 20;

using Subjects = std::initializer_list<std::string_view>;

// ["sl.NAMESPACE.NAME.SUBJECT", …], for any revision. Namespace and name are tokens as they are,
// because they have no dots.
std::string subjects(const Owner& owner, Subjects below) {
  std::string text;
  for (const std::string_view subject : below) {
    text += text.empty() ? "[" : ", ";
    text += "\"sl." + owner.name_space + "." + owner.name + ".*." + std::string(subject) + "\"";
  }
  return text + "]";
}

std::string user(const Owner& owner, const std::string& key, Subjects says, Subjects hears) {
  return "    { nkey: " + key + ", permissions: {\n        publish: " + subjects(owner, says) +
         "\n        subscribe: " + subjects(owner, hears) + " } }\n";
}

std::string users(const Owner& owner, const NatsKeys& keys) {
  return user(owner, keys.frontend, {"members"}, {"members"}) +
         user(
             owner, keys.router,
             {"members", "ask.>", "returns.>", "load", "ask-load", "ask-lists", "lists.>"},
             {"members", "kv.>", "to.>", "returns.>", "load", "ask-load", "ask-lists", "lists.>"}) +
         user(owner, keys.agent, {"members", "kv.>", "to.>"}, {"members", "ask.>"});
}

std::string cluster(const Owner& owner) {
  return "cluster {\n  name: \"" + shared_name(owner, kNats) +
         "\"\n  port: " + std::to_string(kNatsClusterPort) + "\n  no_advertise: true\n  include " +
         std::string(kNatsClusterFile) + "\n}\n";
}

}  // namespace

std::string nats_config(const Owner& owner, const NatsKeys& keys, std::int64_t servers) {
  std::string text = "server_name: $POD_NAME\nport: " + std::to_string(kNatsPort) +
                     "\nhttp_port: " + std::to_string(kNatsMonitorPort) + "\npid_file: \"" +
                     std::string(kNatsPidFile) +
                     "\"\nmax_payload: " + std::to_string(kPayloadBytesMax) +
                     "\nlame_duck_duration: \"30s\"\nlame_duck_grace_period: \"5s\"\n" +
                     "authorization {\n  users: [\n" + users(owner, keys) + "  ]\n}\n";
  if (servers > 1) text += cluster(owner);
  return text;
}

std::string nats_cluster_config(const Owner& owner, const std::string& password) {
  std::string text = "authorization { user: cluster, password: \"" + password + "\" }\nroutes: [\n";
  // Routes to all servers that may exist, because a new number of servers does not change the
  // Secret.
  for (std::int64_t i = 0; i < kNatsServersMax; ++i) {
    text += "  \"nats-route://cluster:" + password + "@" + shared_name(owner, kNats) + "-" +
            std::to_string(i) + "." + nats_servers_service(owner) + "." + owner.name_space +
            ".svc:" + std::to_string(kNatsClusterPort) + "\"\n";
  }
  return text + "]\n";
}

std::string nats_servers_service(const Owner& owner) { return shared_name(owner, "nats-servers"); }

}  // namespace sightline::desired
