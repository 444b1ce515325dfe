// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/names.h"
#include "common/contract/setting_table.h"
#include "common/contract/worker_spec.h"

// Settings that several programs have. This file gives their meaning, unit and default.
// process_settings.cc has their flags, YAML paths, ranges and help texts.
namespace sightline::contract {

using std::chrono::milliseconds;

// The admin port: health, metrics, workers, explain. Not for clients.
struct AdminSettings {
  std::string host = "127.0.0.1";
  // 0: any free port.
  std::uint16_t port = kAdminPort;
  // The tokens of clients that may send PUT there. Empty: no client may.
  std::string token_file;
};

// The model that the engines serve.
struct ModelNameSettings {
  // The Hugging Face model directory. Required.
  std::string path;
  // The first name is the canonical one. Empty: the name that the engines report.
  std::vector<std::string> served_names;

  // The name that block keys depend on. Empty: no name is set.
  [[nodiscard]] std::string scope() const {
    return served_names.empty() ? std::string() : served_names.front();
  }
};

// The secret behind image identities.
struct IdentitySettings {
  // A file with 32 bytes, raw or as 64 hex digits. Empty: the development key.
  std::string key_file;
};

// How the process receives the engines' KV events.
struct EventSettings {
  // The limit, in bytes, of received events that wait, for all engines. Above it the process stops
  // reading from the engines' sockets.
  std::uint64_t held_bytes_max = 512 << 20;
};

// How a fleet watches its workers.
struct FleetSettings {
  // Between two health checks of a worker.
  milliseconds probe_interval{5'000};
  // Between two readings of a worker's load metrics.
  milliseconds scrape_interval{1'000};
  // The timeout of one health, discovery or metrics call.
  milliseconds probe_timeout{2'000};
  // The timeout of a connection to a worker, for a request.
  milliseconds connect_timeout{2'000};
  // How long a worker may send nothing within a request.
  milliseconds request_timeout{600'000};
  // The longest that readiness waits for what can be learnt of the workers.
  milliseconds ready_timeout{30'000};
  // How long a worker may hold requests without sending a token. 0: for ever.
  milliseconds wedge_timeout{60'000};
};

// NATS, over which router replicas and agents exchange messages.
struct NatsSettings {
  // "nats://HOST[:PORT]" or "tls://…", several separated by commas. Empty: there is no NATS.
  std::string urls;
  // The authority that must have signed server certificates. Empty: the system's.
  std::string ca_file;
  // The own certificate, PEM. Give key_file too, or neither.
  std::string cert_file;
  // The private key of cert_file, PEM.
  std::string key_file;
  // A file with JWT and seed, as nsc writes them, or with a line USER:PASSWORD or TOKEN.
  // JWT and seed as nsc writes them, or a line USER:PASSWORD or TOKEN.
  std::string credentials_file;
  // A file with the seed of an nkey user.
  std::string nkey_file;
};

// Which processes exchange messages over NATS, and how long received state stays valid.
struct ReplicaSettings {
  // NAMESPACE/NAME. Processes only read messages of their own scope.
  std::string scope = "default/default";
  // The revision of what processes say. They only read messages of the same revision.
  std::string revision = "0";
  // The name of this process. Empty: host name and port.
  std::string name;
  // An engine without news for this time counts without overlap.
  milliseconds stale_after{5'000};
};

// What a process writes to standard error.
struct LogSettings {
  // The least severe level that is written: debug, info, warn or error.
  std::string level = "info";
  // text or json (log.h).
  std::string format = "text";
};

// These add rows to the table. The rows are bound to `s`, which must outlive the table.
void add_admin(SettingTable& table, AdminSettings& s);
// Who may change something there.
void add_admin_tokens(SettingTable& table, AdminSettings& s);
void add_model_name(SettingTable& table, ModelNameSettings& s);
void add_identity(SettingTable& table, IdentitySettings& s);
void add_events(SettingTable& table, EventSettings& s);
// Probes and readings.
void add_fleet(SettingTable& table, FleetSettings& s);
// The other rows of FleetSettings.
void add_worker_requests(SettingTable& table, FleetSettings& s);
// When a router reports ready.
void add_ready(SettingTable& table, FleetSettings& s);
void add_nats(SettingTable& table, NatsSettings& s);
// Which processes exchange messages.
void add_replica(SettingTable& table, ReplicaSettings& s);
// The other row of ReplicaSettings.
void add_stale_after(SettingTable& table, ReplicaSettings& s);
void add_log(SettingTable& table, LogSettings& s);
void add_worker_list(SettingTable& table, std::vector<WorkerSpec>& workers);

// A server of NatsSettings::urls.
struct NatsServer {
  // "nats://HOST:PORT" or "tls://HOST:PORT".
  std::string url;
  // Without the brackets of an IPv6 address.
  std::string host;
  bool is_secure = false;
};

// The servers in a text like NatsSettings::urls. The default port is 4222. Errors: InvalidArgument
// for any text but a list of these URLs, and for URLs with user names or passwords, because
// settings are shown.
Result<std::vector<NatsServer>> nats_servers(std::string_view urls);

// Checks of relations that no single setting can check. Errors: InvalidArgument that names the
// settings.
Result<Done> check_model_name(const ModelNameSettings& s);
Result<Done> check_workers(const std::vector<WorkerSpec>& workers, bool has_config_file);
Result<Done> check_nats(const NatsSettings& s);
Result<Done> check_replica(const ReplicaSettings& s);

// Errors: InvalidArgument for a worker with an agent but without NATS, because no router would
// receive the agent's messages.
Result<Done> check_agents(const std::vector<WorkerSpec>& workers, const NatsSettings& nats);

// The limit for scope, revision and name, each.
inline constexpr std::size_t kReplicaNameBytesMax = 200;

}  // namespace sightline::contract
