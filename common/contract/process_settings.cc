// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/process_settings.h"

#include <string>

namespace sightline::contract {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
constexpr milliseconds kHour = 1h;

}  // namespace

void add_admin(SettingTable& table, AdminSettings& s) {
  table.add_text({"admin.host", "admin-host", "ADDRESS",
                  "Address of the admin port. It has no authentication: keep it inside."},
                 s.host);
  table.add_integer<std::uint16_t>(
      {"admin.port", "admin-port", "N",
       "Admin port: health, metrics, workers, explain. 0 takes any free one."},
      s.port, {0, 65535});
}

void add_identity(SettingTable& table, IdentitySettings& s) {
  table.add_text({"identity.key_file", "identity-key-file", "FILE",
                  "32 bytes, raw or as 64 hex digits: the secret behind image identities. Without "
                  "it a documented development key is used, with a warning."},
                 s.key_file);
}

void add_events(SettingTable& table, EventSettings& s) {
  table.add_size({"events.held_bytes_max", "events-held-bytes-max", "SIZE",
                  "KV events received and not yet applied, of all engines together; beyond it they "
                  "are not read, and what an engine then drops is asked for again."},
                 s.held_bytes_max, {16 * kMiB, 1024 * kGiB});
}

void add_fleet(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.probe_interval", "fleet-probe-interval", "TIME",
                      "Between health probes of a worker."},
                     s.probe_interval, {50ms, kHour});
  table.add_duration({"fleet.scrape_interval", "fleet-scrape-interval", "TIME",
                      "Between readings of a worker's load metrics."},
                     s.scrape_interval, {50ms, kHour});
  table.add_duration({"fleet.probe_timeout", "fleet-probe-timeout", "TIME",
                      "One health, discovery or metrics call to a worker."},
                     s.probe_timeout, {10ms, kHour});
  table.add_duration({"fleet.connect_timeout", "fleet-connect-timeout", "TIME",
                      "Connecting to a worker for a request."},
                     s.connect_timeout, {10ms, kHour});
  table.add_duration({"fleet.request_timeout", "fleet-request-timeout", "TIME",
                      "Silence of a worker within a request, before and after its first byte."},
                     s.request_timeout, {100ms, 24 * kHour});
}

void add_log(SettingTable& table, LogSettings& s) {
  table.add_choice({"log.level", "log-level", "LEVEL", "Least severe lines to write."}, s.level,
                   {std::string("debug"), "info", "warn", "error"});
}

void add_worker_list(SettingTable& table, std::vector<WorkerSpec>& workers) {
  table.add_workers(
      {"workers", "worker", "FIELDS",
       "One engine; repeatable. name=w0,url=http://HOST:PORT[,events=tcp://HOST:PORT]"
       "[,replay=tcp://HOST:PORT][,dp=N][,block_size=N][,copies=KIND][,drain=true]"
       "[,api_key_file=FILE]: "
       "vLLM tells its events from 0.31, so only url is needed; before, events and replay too. "
       "Of SGLang with family=sglang. "
       "Workers of flags, environment and file add up."},
      workers);
}

}  // namespace sightline::contract
