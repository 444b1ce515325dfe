// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "operator/desired/object_names.h"

// The configuration of the servers of a managed NATS. Pure text.
namespace sightline::desired {

inline constexpr std::int64_t kNatsPort = 4222;
inline constexpr std::int64_t kNatsClusterPort = 6222;
inline constexpr std::int64_t kNatsMonitorPort = 8222;
inline constexpr std::int64_t kNatsServersMax = 3;

inline constexpr std::string_view kNatsConfigFile = "nats.conf";
inline constexpr std::string_view kNatsClusterFile = "cluster.conf";
inline constexpr std::string_view kNatsPidFile = "/var/run/nats/nats.pid";

// The public keys of the users, see nkey.h.
struct NatsKeys {
  std::string frontend;
  std::string router;
  std::string agent;
};

// The nats.conf of each server. A user may publish and subscribe only to subjects of the
// MultimodalRouter (common/contract/subjects.h) that its role needs:
// - agents: the blocks of workers
// - routers: these, and each other's load and lists
// - frontends: announcements of members
//
// All other clients are refused. Several servers include the file of nats_cluster_config(), which
// is beside this one.
std::string nats_config(const Owner& owner, const NatsKeys& keys, std::int64_t servers);

// The cluster.conf: how the servers connect and authenticate to each other. Contains the password,
// in hexadecimal digits.
std::string nats_cluster_config(const Owner& owner, const std::string& password);

// The name of the Service that has a name for each server.
std::string nats_servers_service(const Owner& owner);

}  // namespace sightline::desired
