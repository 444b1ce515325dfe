// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/process_settings.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/bytes.h"

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
                  "Address of the admin port. What it shows, it shows to everybody: keep it "
                  "inside."},
                 s.host);
  table.add_integer<std::uint16_t>(
      {"admin.port", "admin-port", "N",
       "Admin port: health, metrics, workers, explain. 0 takes any free one."},
      s.port, {0, 65535});
}

void add_model_name(SettingTable& table, ModelNameSettings& s) {
  table.add_text({"model.path", "model-path", "DIR",
                  "Hugging Face model directory: config.json, tokenizer.json, chat template, "
                  "preprocessor_config.json. Required."},
                 s.path);
  table.add_text_list({"model.served_names", "served-model-name", "NAME",
                       "Model name that requests may use; repeatable, the first is the canonical "
                       "one. Without it the engines' own names count."},
                      s.served_names);
}

void add_admin_tokens(SettingTable& table, AdminSettings& s) {
  table.add_text({"admin.token_file", "admin-token-file", "FILE",
                  "Tokens, one a line, of those who may change workers and settings by PUT on the "
                  "admin port, or drain the workers of an agent by POST /drain. Read again when it "
                  "is asked. Empty: nobody may."},
                 s.token_file);
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
}

void add_worker_requests(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.connect_timeout", "fleet-connect-timeout", "TIME",
                      "Connecting to a worker for a request."},
                     s.connect_timeout, {10ms, kHour});
  table.add_duration({"fleet.request_timeout", "fleet-request-timeout", "TIME",
                      "Silence of a worker within a request, before and after its first byte."},
                     s.request_timeout, {100ms, 24 * kHour});
  table.add_duration({"fleet.wedge_timeout", "fleet-wedge-timeout", "TIME",
                      "A worker that holds requests and gives no token to anybody for so long is "
                      "suspect. 0: however long."},
                     s.wedge_timeout, {0ms, 24 * kHour});
}

void add_ready(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.ready_timeout", "ready-timeout", "TIME",
                      "/readyz waits at most this long, from the first list of workers on, for "
                      "what can be learnt of them. 0: it does not wait."},
                     s.ready_timeout, {0ms, kHour});
}

void add_nats(SettingTable& table, NatsSettings& s) {
  table.add_text(
      {"nats.urls", "nats", "URLS",
       "NATS servers, nats://HOST:PORT or tls://HOST:PORT with commas between, over which "
       "router replicas and agents hear each other. Empty: none, this router is alone."},
      s.urls);
  table.add_text({"nats.ca_file", "nats-ca-file", "FILE",
                  "Certificates, PEM, that the servers' must be signed by. TLS is used with it, "
                  "whatever the URL. Empty: those of the system."},
                 s.ca_file);
  table.add_text({"nats.cert_file", "nats-cert-file", "FILE",
                  "Own certificate, PEM, where the servers ask for one. Goes with the key."},
                 s.cert_file);
  table.add_text(
      {"nats.key_file", "nats-key-file", "FILE", "Private key of that certificate, PEM."},
      s.key_file);
  table.add_text({"nats.credentials_file", "nats-credentials-file", "FILE",
                  "What the servers ask for: JWT and seed as nsc writes them, or one line "
                  "USER:PASSWORD or TOKEN. Read again at each attempt to connect."},
                 s.credentials_file);
  table.add_text({"nats.nkey_file", "nats-nkey-file", "FILE",
                  "Seed of an nkey user, instead. Read again at each attempt to connect."},
                 s.nkey_file);
}

void add_replica(SettingTable& table, ReplicaSettings& s) {
  table.add_text({"replica.scope", "scope", "NAMESPACE/NAME",
                  "Only routers and agents of the same scope hear each other over NATS, on "
                  "subjects that begin with sl.NAMESPACE.NAME."},
                 s.scope);
  table.add_text({"replica.revision", "revision", "TEXT",
                  "Changed with the model or the identity key: routers and agents of different "
                  "revisions do not count on each other."},
                 s.revision);
  table.add_text({"replica.name", "replica-name", "TEXT",
                  "Name of this process for the others, unique. Empty: host name and port."},
                 s.name);
}

void add_stale_after(SettingTable& table, ReplicaSettings& s) {
  table.add_duration({"replica.stale_after", "replica-stale-after", "TIME",
                      "Without news over NATS of what an engine holds for so long, it counts "
                      "without overlap."},
                     s.stale_after, {2'000ms, kHour});
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

namespace {

constexpr std::string_view kPlainScheme = "nats://";
constexpr std::string_view kSecureScheme = "tls://";

Error bad_url(std::string_view why) {
  return client_error(
      ErrorCode::InvalidArgument,
      "nats.urls: " + std::string(why) +
          "; it takes nats://HOST[:PORT] or tls://HOST[:PORT], with commas between");
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._").find(c) != std::string_view::npos;
}

// Splits into the host and the rest, which is ":PORT" or empty.
Result<std::pair<std::string_view, std::string_view>> split_host(std::string_view place) {
  if (place.starts_with('[')) {
    const std::size_t end = place.find(']');
    if (end == std::string_view::npos) return bad_url("a '[' has no ']'");
    const std::string_view host = place.substr(1, end - 1);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) {
      return bad_url("between '[' and ']' stands no IPv6 address");
    }
    return std::pair(host, place.substr(end + 1));
  }
  const std::size_t end = std::min(place.find(':'), place.size());
  const std::string_view host = place.substr(0, end);
  if (!std::all_of(host.begin(), host.end(), is_host_character)) {
    return bad_url("a host has a character that no host name has");
  }
  return std::pair(host, place.substr(end));
}

Result<NatsServer> nats_server(std::string_view url) {
  NatsServer server;
  server.is_secure = url.starts_with(kSecureScheme);
  if (!server.is_secure && !url.starts_with(kPlainScheme))
    return bad_url("a URL has another scheme");
  const std::string_view scheme = server.is_secure ? kSecureScheme : kPlainScheme;
  std::string_view place = url.substr(scheme.size());
  if (place.find('@') != std::string_view::npos) {
    return bad_url("user names and passwords belong in nats.credentials_file");
  }
  if (place.ends_with('/')) place.remove_suffix(1);
  const auto [host, rest] = SL_TRY(split_host(place));
  if (host.empty()) return bad_url("a host is missing");
  std::uint16_t port = kNatsPort;
  if (!rest.empty()) {
    const char* end = rest.data() + rest.size();
    const auto read = std::from_chars(rest.data() + 1, end, port);
    if (rest[0] != ':' || read.ec != std::errc() || read.ptr != end || port == 0) {
      return bad_url("a port is none of 1..65535");
    }
  }
  server.host = host;
  const std::string shown = place.starts_with('[') ? "[" + server.host + "]" : server.host;
  server.url = std::string(scheme) + shown + ":" + std::to_string(port);
  return server;
}

Result<Done> check_name(std::string_view setting, std::string_view text, bool may_be_empty) {
  if (text.empty() && !may_be_empty) {
    return client_error(ErrorCode::InvalidArgument, std::string(setting) + " is empty");
  }
  if (text.size() > kReplicaNameBytesMax) {
    return client_error(ErrorCode::InvalidArgument, std::string(setting) + " is longer than " +
                                                        std::to_string(kReplicaNameBytesMax) +
                                                        " bytes");
  }
  if (!is_utf8(text)) {
    return client_error(ErrorCode::InvalidArgument, std::string(setting) + " is not UTF-8");
  }
  return Done{};
}

}  // namespace

Result<std::vector<NatsServer>> nats_servers(std::string_view urls) {
  std::vector<NatsServer> servers;
  while (true) {
    const std::size_t comma = urls.find(',');
    servers.push_back(SL_TRY(nats_server(urls.substr(0, comma))));
    if (comma == std::string_view::npos) return servers;
    urls.remove_prefix(comma + 1);
  }
}

Result<Done> check_model_name(const ModelNameSettings& s) {
  if (!s.path.empty()) return Done{};
  return client_error(ErrorCode::InvalidArgument,
                      "model.path is not set: give --model-path DIR, SIGHTLINE_MODEL_PATH or "
                      "model.path in the configuration file");
}

Result<Done> check_workers(const std::vector<WorkerSpec>& workers, bool has_config_file) {
  if (!workers.empty() || has_config_file) return Done{};
  return client_error(ErrorCode::InvalidArgument,
                      "there is no worker: give --worker url=http://HOST:PORT at least once, or "
                      "a configuration file with 'workers' (it is watched, they may come later)");
}

Result<Done> check_nats(const NatsSettings& s) {
  if (!s.urls.empty()) SL_TRY(nats_servers(s.urls));
  if (s.cert_file.empty() != s.key_file.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "nats.cert_file and nats.key_file go together: give both or neither");
  }
  if (!s.credentials_file.empty() && !s.nkey_file.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "nats.credentials_file and nats.nkey_file exclude each other");
  }
  return Done{};
}

Result<Done> check_agents(const std::vector<WorkerSpec>& workers, const NatsSettings& nats) {
  if (!nats.urls.empty()) return Done{};
  const auto with_agent = std::find_if(workers.begin(), workers.end(),
                                       [](const WorkerSpec& worker) { return worker.agent; });
  if (with_agent == workers.end()) return Done{};
  return client_error(ErrorCode::InvalidArgument,
                      "worker '" + with_agent->name +
                          "' has agent=true, and agents are heard over NATS: give --nats URL, or "
                          "leave agent=true out to have its events read here");
}

Result<Done> check_replica(const ReplicaSettings& s) {
  SL_TRY(check_name("replica.scope", s.scope, false));
  SL_TRY(check_name("replica.revision", s.revision, false));
  SL_TRY(check_name("replica.name", s.name, true));
  const std::size_t slash = s.scope.find('/');
  if (slash == 0 || slash >= s.scope.size() - 1 ||
      s.scope.find('/', slash + 1) != std::string::npos) {
    return client_error(ErrorCode::InvalidArgument,
                        "replica.scope '" + s.scope +
                            "' is no NAMESPACE/NAME: one '/' between two "
                            "names");
  }
  return Done{};
}

}  // namespace sightline::contract
