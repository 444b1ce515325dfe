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
  table.add_text(
      {"admin.host", "admin-host", "ADDRESS",
       "Address of the admin port. It shows its data to every caller, so use an internal address."},
      s.host);
  table.add_integer<std::uint16_t>(
      {"admin.port", "admin-port", "N",
       "Admin port: health, metrics, workers, explain. 0: any free port."},
      s.port, {0, 65535});
}

void add_model_name(SettingTable& table, ModelNameSettings& s) {
  table.add_text({"model.path", "model-path", "DIR",
                  "Hugging Face model directory: config.json, tokenizer.json, chat template, "
                  "preprocessor_config.json. Required."},
                 s.path);
  table.add_text_list({"model.served_names", "served-model-name", "NAME",
                       "Model name that requests may use. Repeatable. The first is the canonical "
                       "one. Without it, the engines' own names are used."},
                      s.served_names);
}

void add_admin_tokens(SettingTable& table, AdminSettings& s) {
  table.add_text({"admin.token_file", "admin-token-file", "FILE",
                  "Tokens, one a line. A caller with one of them may change workers and settings "
                  "by PUT on the admin port. It may also drain an agent's workers by POST /drain. "
                  "The file is read again at most once a second. Empty: no caller may."},
                 s.token_file);
}

void add_identity(SettingTable& table, IdentitySettings& s) {
  table.add_text({"identity.key_file", "identity-key-file", "FILE",
                  "32 bytes, raw or as 64 hex digits: the secret behind image identities. Without "
                  "it, a documented development key is used, with a warning."},
                 s.key_file);
}

void add_events(SettingTable& table, EventSettings& s) {
  table.add_size(
      {"events.held_bytes_max", "events-held-bytes-max", "SIZE",
       "Memory for KV events that are received and not yet applied, of all engines together. Above "
       "it, events are not read. Events that an engine then drops are requested again."},
      s.held_bytes_max, {16 * kMiB, 1024 * kGiB});
}

void add_fleet(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.probe_interval", "fleet-probe-interval", "TIME",
                      "Time between health probes of a worker."},
                     s.probe_interval, {50ms, kHour});
  table.add_duration({"fleet.scrape_interval", "fleet-scrape-interval", "TIME",
                      "Time between readings of a worker's load metrics."},
                     s.scrape_interval, {50ms, kHour});
  table.add_duration({"fleet.probe_timeout", "fleet-probe-timeout", "TIME",
                      "Timeout of one health, discovery or metrics call to a worker."},
                     s.probe_timeout, {10ms, kHour});
}

void add_worker_requests(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.connect_timeout", "fleet-connect-timeout", "TIME",
                      "Time to connect to a worker for a request."},
                     s.connect_timeout, {10ms, kHour});
  table.add_duration(
      {"fleet.request_timeout", "fleet-request-timeout", "TIME",
       "How long a worker may be silent within a request, before and after its first byte."},
      s.request_timeout, {100ms, 24 * kHour});
  table.add_duration({"fleet.wedge_timeout", "fleet-wedge-timeout", "TIME",
                      "A worker that has requests and sends no token for any of them for this long "
                      "is suspect. 0: no limit."},
                     s.wedge_timeout, {0ms, 24 * kHour});
}

void add_ready(SettingTable& table, FleetSettings& s) {
  table.add_duration({"fleet.ready_timeout", "ready-timeout", "TIME",
                      "The longest that /readyz waits, from the first list of workers on, until "
                      "the workers' blocks are known. 0: it does not wait."},
                     s.ready_timeout, {0ms, kHour});
}

void add_nats(SettingTable& table, NatsSettings& s) {
  table.add_text(
      {"nats.urls", "nats", "URLS",
       "NATS servers, nats://HOST:PORT or tls://HOST:PORT with commas between. Router replicas and "
       "agents communicate over them. Empty: no NATS, this router is alone."},
      s.urls);
  table.add_text({"nats.ca_file", "nats-ca-file", "FILE",
                  "PEM file of CA certificates that must have signed the servers' certificates. "
                  "With it, TLS is used for every URL. Empty: the CA certificates of the system."},
                 s.ca_file);
  table.add_text({"nats.cert_file", "nats-cert-file", "FILE",
                  "PEM file of this process's own certificate, if the servers require one. It "
                  "needs nats.key_file too."},
                 s.cert_file);
  table.add_text(
      {"nats.key_file", "nats-key-file", "FILE", "PEM file of that certificate's private key."},
      s.key_file);
  table.add_text({"nats.credentials_file", "nats-credentials-file", "FILE",
                  "Credentials for the servers: JWT and seed as nsc writes them, or one line "
                  "USER:PASSWORD or TOKEN. Read again at each attempt to connect."},
                 s.credentials_file);
  table.add_text({"nats.nkey_file", "nats-nkey-file", "FILE",
                  "Seed of an nkey user, instead of nats.credentials_file. Read again at each "
                  "attempt to connect."},
                 s.nkey_file);
}

void add_replica(SettingTable& table, ReplicaSettings& s) {
  table.add_text({"replica.scope", "scope", "NAMESPACE/NAME",
                  "Only routers and agents of the same scope communicate over NATS. Their subjects "
                  "begin with sl.NAMESPACE.NAME."},
                 s.scope);
  table.add_text({"replica.revision", "revision", "TEXT",
                  "Change it with the model or the identity key. Routers and agents do not use "
                  "data of another revision."},
                 s.revision);
  table.add_text(
      {"replica.name", "replica-name", "TEXT",
       "Unique name of this process, for the other processes. Empty: host name and port."},
      s.name);
}

void add_stale_after(SettingTable& table, ReplicaSettings& s) {
  table.add_duration({"replica.stale_after", "replica-stale-after", "TIME",
                      "An engine counts without overlap if no report about its cache has come over "
                      "NATS for this long."},
                     s.stale_after, {2'000ms, kHour});
}

void add_log(SettingTable& table, LogSettings& s) {
  table.add_choice(
      {"log.level", "log-level", "LEVEL", "Lowest severity of the lines that are logged."}, s.level,
      {std::string("debug"), "info", "warn", "error"});
  table.add_choice({"log.format", "log-format", "FORMAT",
                    "Form of a log line: text with key=value fields, or one JSON object."},
                   s.format, {std::string("text"), "json"});
}

void add_worker_list(SettingTable& table, std::vector<WorkerSpec>& workers) {
  table.add_workers(
      {"workers", "worker", "FIELDS",
       "One engine. Repeatable. name=w0,url=http://HOST:PORT[,events=tcp://HOST:PORT]"
       "[,replay=tcp://HOST:PORT][,dp=N][,block_size=N][,copies=KIND][,drain=true]"
       "[,api_key_file=FILE]: vLLM 0.31 and later reports its event endpoints, so only url is "
       "needed. Earlier versions need events and replay too. SGLang needs family=sglang. Workers "
       "of flags, environment and file are combined."},
      workers);
}

namespace {

constexpr std::string_view kPlainScheme = "nats://";
constexpr std::string_view kSecureScheme = "tls://";

Error bad_url(std::string_view why) {
  return client_error(ErrorCode::InvalidArgument,
                      "nats.urls: " + std::string(why) +
                          ". Give nats://HOST[:PORT] or tls://HOST[:PORT], with commas between");
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
      return bad_url("there is no IPv6 address between '[' and ']'");
    }
    return std::pair(host, place.substr(end + 1));
  }
  const std::size_t end = std::min(place.find(':'), place.size());
  const std::string_view host = place.substr(0, end);
  if (!std::all_of(host.begin(), host.end(), is_host_character)) {
    return bad_url("a host has a character that is not allowed in host names");
  }
  return std::pair(host, place.substr(end));
}

Result<NatsServer> nats_server(std::string_view url) {
  NatsServer server;
  server.is_secure = url.starts_with(kSecureScheme);
  if (!server.is_secure && !url.starts_with(kPlainScheme))
    return bad_url("the scheme of a URL is neither nats:// nor tls://");
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
      return bad_url("a port is not in 1..65535");
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
  return client_error(
      ErrorCode::InvalidArgument,
      "no worker is configured: give --worker url=http://HOST:PORT at least once, or a "
      "configuration file with 'workers'. The file is watched, and workers may be added later");
}

Result<Done> check_nats(const NatsSettings& s) {
  if (!s.urls.empty()) SL_TRY(nats_servers(s.urls));
  if (s.cert_file.empty() != s.key_file.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "nats.cert_file and nats.key_file go together: give both or neither");
  }
  if (!s.credentials_file.empty() && !s.nkey_file.empty()) {
    return client_error(
        ErrorCode::InvalidArgument,
        "nats.credentials_file and nats.nkey_file exclude each other: give only one");
  }
  return Done{};
}

Result<Done> check_agents(const std::vector<WorkerSpec>& workers, const NatsSettings& nats) {
  if (!nats.urls.empty()) return Done{};
  const auto with_agent = std::find_if(workers.begin(), workers.end(),
                                       [](const WorkerSpec& worker) { return worker.agent; });
  if (with_agent == workers.end()) return Done{};
  return client_error(
      ErrorCode::InvalidArgument,
      "worker '" + with_agent->name +
          "' has agent=true, but nats.urls is not set, and agents publish over NATS: give --nats "
          "URL, or remove agent=true to let this router read its events");
}

Result<Done> check_replica(const ReplicaSettings& s) {
  SL_TRY(check_name("replica.scope", s.scope, false));
  SL_TRY(check_name("replica.revision", s.revision, false));
  SL_TRY(check_name("replica.name", s.name, true));
  const std::size_t slash = s.scope.find('/');
  if (slash == 0 || slash >= s.scope.size() - 1 ||
      s.scope.find('/', slash + 1) != std::string::npos) {
    return client_error(
        ErrorCode::InvalidArgument,
        "replica.scope '" + s.scope + "' is not NAMESPACE/NAME: write one '/' between two names");
  }
  return Done{};
}

}  // namespace sightline::contract
