// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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
};

struct LogSettings {
  std::string level = "info";  // debug, info, warn, error
};

// Rows bound to `s`, which must outlive the table.
void add_admin(SettingTable& table, AdminSettings& s);
void add_identity(SettingTable& table, IdentitySettings& s);
void add_events(SettingTable& table, EventSettings& s);
void add_fleet(SettingTable& table, FleetSettings& s);
void add_log(SettingTable& table, LogSettings& s);
void add_worker_list(SettingTable& table, std::vector<WorkerSpec>& workers);

}  // namespace sightline::contract
