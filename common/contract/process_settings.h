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

// Settings that several programs have: here their meaning, unit and default; in
// process_settings.cc their flags, YAML paths, ranges and help texts.
namespace sightline::contract {

using std::chrono::milliseconds;

// The admin port: health, metrics, workers, explain. Not for clients.
struct AdminSettings {
  std::string host = "127.0.0.1";
  std::uint16_t port = kAdminPort;  // 0: any free port
  std::string token_file;           // who may PUT there; empty: nobody
};

// Which model it is.
struct ModelNameSettings {
  std::string path;                       // Hugging Face model directory; required
  std::vector<std::string> served_names;  // first = canonical; empty: the engines' own name

  // The name that block keys depend on; empty: none is set.
  [[nodiscard]] std::string scope() const {
    return served_names.empty() ? std::string() : served_names.front();
  }
};

struct IdentitySettings {
  std::string key_file;  // 32 bytes, raw or as 64 hex digits; empty: the development key
};

// How the engines' KV events are taken in.
struct EventSettings {
  // Received and not yet applied, of all engines together; beyond it their sockets are not read.
  std::uint64_t held_bytes_max = 512 << 20;
};

// How workers are watched.
struct FleetSettings {
  milliseconds probe_interval{5'000};     // health of each worker
  milliseconds scrape_interval{1'000};    // load metrics of each worker
  milliseconds probe_timeout{2'000};      // one health, discovery or metrics call
  milliseconds connect_timeout{2'000};    // to a worker, for a request
  milliseconds request_timeout{600'000};  // silence of a worker within a request
  milliseconds ready_timeout{30'000};     // readiness waits for what can be learnt of the workers
  milliseconds wedge_timeout{60'000};     // holding requests without a token; 0: for ever
};

// NATS, over which router replicas and agents hear each other.
struct NatsSettings {
  // "nats://HOST[:PORT]" or "tls://…", several with commas between; empty: there is none.
  std::string urls;
  std::string ca_file;    // whom server certificates must be signed by; empty: the system's
  std::string cert_file;  // own certificate, PEM; with key_file or neither
  std::string key_file;   // its private key, PEM
  std::string
      credentials_file;   // JWT and seed as nsc writes them, or a line USER:PASSWORD or TOKEN
  std::string nkey_file;  // seed of an nkey user
};

// Who hears whom over NATS, and how long what was heard counts.
struct ReplicaSettings {
  std::string scope = "default/default";  // NAMESPACE/NAME; only those of the same hear each other
  std::string revision = "0";             // of what is said; nor do those of different ones
  std::string name;                       // of this process; empty: host name and port
  milliseconds stale_after{5'000};        // without news of an engine it counts without overlap
};

struct LogSettings {
  std::string level = "info";  // debug, info, warn, error
};

// Rows bound to `s`, which must outlive the table.
void add_admin(SettingTable& table, AdminSettings& s);
void add_admin_tokens(SettingTable& table, AdminSettings& s);  // who may change things there
void add_model_name(SettingTable& table, ModelNameSettings& s);
void add_identity(SettingTable& table, IdentitySettings& s);
void add_events(SettingTable& table, EventSettings& s);
void add_fleet(SettingTable& table, FleetSettings& s);            // probes and readings
void add_worker_requests(SettingTable& table, FleetSettings& s);  // the rest of it
void add_ready(SettingTable& table, FleetSettings& s);  // when a router calls itself ready
void add_nats(SettingTable& table, NatsSettings& s);
void add_replica(SettingTable& table, ReplicaSettings& s);      // who hears whom
void add_stale_after(SettingTable& table, ReplicaSettings& s);  // the rest of it
void add_log(SettingTable& table, LogSettings& s);
void add_worker_list(SettingTable& table, std::vector<WorkerSpec>& workers);

// A server of NatsSettings::urls.
struct NatsServer {
  std::string url;   // "nats://HOST:PORT" or "tls://HOST:PORT"
  std::string host;  // without the brackets of an IPv6 address
  bool is_secure = false;
};

// Servers in a text like NatsSettings::urls; the port is 4222 where none is given. Errors:
// InvalidArgument for text that is no list of such URLs, and for user names and passwords within
// them, which would be shown with the settings.
Result<std::vector<NatsServer>> nats_servers(std::string_view urls);

// Relations that no single setting can check. Errors: InvalidArgument, naming the settings.
Result<Done> check_model_name(const ModelNameSettings& s);
Result<Done> check_workers(const std::vector<WorkerSpec>& workers, bool has_config_file);
Result<Done> check_nats(const NatsSettings& s);
Result<Done> check_replica(const ReplicaSettings& s);

// Errors: InvalidArgument for a worker whose agent nobody would hear, as no NATS is given.
Result<Done> check_agents(const std::vector<WorkerSpec>& workers, const NatsSettings& nats);

inline constexpr std::size_t kReplicaNameBytesMax = 200;  // of scope, revision and name, each

}  // namespace sightline::contract
