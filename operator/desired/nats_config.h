// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "operator/desired/names.h"

// What the servers of a managed NATS are told. Pure text.
namespace sightline::desired {

inline constexpr std::int64_t kNatsPort = 4222;
inline constexpr std::int64_t kNatsClusterPort = 6222;
inline constexpr std::int64_t kNatsMonitorPort = 8222;
inline constexpr std::int64_t kNatsServersMax = 3;

inline constexpr std::string_view kNatsConfigFile = "nats.conf";
inline constexpr std::string_view kNatsClusterFile = "cluster.conf";
inline constexpr std::string_view kNatsPidFile = "/var/run/nats/nats.pid";

// Public keys of the users; see nkey.h.
struct NatsKeys {
  std::string frontend;
  std::string router;
  std::string agent;
};

// nats.conf of each server. A user may say and hear what its role needs of the MultimodalRouter's
// subjects (common/contract/subjects.h), and nothing else: agents what workers hold, routers that
// and each other's load and lists, frontends who is there. Any other client is refused. Several
// servers include what nats_cluster_config() says, which stands beside this file.
std::string nats_config(const Owner& owner, const NatsKeys& keys, std::int64_t servers);

// cluster.conf: how the servers reach and believe each other. Holds the password, of hexadecimal
// digits.
std::string nats_cluster_config(const Owner& owner, const std::string& password);

// Name of the Service whose name stands for each server.
std::string nats_servers_service(const Owner& owner);

}  // namespace sightline::desired
