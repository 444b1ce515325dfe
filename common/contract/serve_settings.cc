// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/serve_settings.h"

#include <limits>

namespace sightline::contract {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr std::uint32_t kThreadsMax = 1024;
constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
constexpr milliseconds kHour = 1h;

void add_server(SettingTable& table, ServerSettings& s) {
  table.add_text({"server.host", "host", "ADDRESS",
                  "Address of the client port. 0.0.0.0 also accepts requests from other machines, "
                  ":: also over IPv6."},
                 s.host);
  table.add_integer<std::uint16_t>(
      {"server.port", "port", "N", "Client port: OpenAI API. 0: any free port."}, s.port,
      {0, 65535});
  table.add_integer<std::uint32_t>({"server.io_threads", "io-threads", "N",
                                    "Threads that serve connections. 0: one per usable core."},
                                   s.io_threads, {0, kThreadsMax});
  table.add_integer<std::uint32_t>(
      {"server.compute_threads", "compute-threads", "N",
       "Threads for long prompts and large images. 0: one per usable core, at least 2."},
      s.compute_threads, {0, kThreadsMax});
  table.add_size({"server.header_bytes_max", "header-bytes-max", "SIZE",
                  "Longest request line with headers. A longer one is answered 431."},
                 s.header_bytes_max, {kKiB, kMiB});
  table.add_size({"server.body_bytes_max", "body-bytes-max", "SIZE",
                  "Longest request body. A longer one is answered 413."},
                 s.body_bytes_max, {kKiB, 4 * kGiB});
  table.add_size(
      {"server.memory_bytes_max", "memory-bytes-max", "SIZE",
       "Memory for all data from clients, engines and peers. Above it, requests are answered 503 "
       "with Retry-After, and events wait. 0: three quarters of the cgroup's limit, else of the "
       "memory available at the start. Otherwise at least 64MiB."},
      s.memory_bytes_max, {0, 1024 * kGiB});
  table.add_size({"server.total_body_bytes_max", "total-body-bytes-max", "SIZE",
                  "Memory for the bodies of all requests, also incomplete ones, and for the data "
                  "parsed from them. Above it, requests are answered 503 with Retry-After."},
                 s.total_body_bytes_max, {kKiB, 1024 * kGiB});
  table.add_integer<std::uint32_t>(
      {"server.connections_max", "connections-max", "N",
       "Client connections at the same time. One more closes the connection that has waited "
       "longest for a request. If no connection waits, it is answered 503 with Retry-After."},
      s.connections_max, {1, 1'000'000});
  table.add_integer<std::uint32_t>(
      {"server.concurrent_requests_max", "concurrent-requests-max", "N",
       "Requests processed at the same time. Further requests are answered 503 with Retry-After."},
      s.concurrent_requests_max, {1, 1'000'000});
  table.add_duration({"server.header_timeout", "header-timeout", "TIME",
                      "Time from a request's first byte to the end of its headers."},
                     s.header_timeout, {100ms, kHour});
  table.add_duration({"server.idle_timeout", "idle-timeout", "TIME",
                      "Longest silence of a client: between requests, in a body, while reading."},
                     s.idle_timeout, {100ms, kHour});
  table.add_duration({"server.drain_timeout", "drain-timeout", "TIME",
                      "How long running requests may continue after SIGTERM. Then they get an "
                      "error and are cut off. 0: they are cut off immediately."},
                     s.drain_timeout, {0ms, kHour});
  table.add_text_list(
      {"server.passed_paths", "passed-path", "PATH",
       "A path forwarded to engines besides their inference endpoints, like /v1/load_lora_adapter. "
       "* is one segment. Repeatable. Other paths are answered 404."},
      s.passed_paths);
  table.add_text_list({"server.cors_origins", "cors-origin", "ORIGIN",
                       "An origin whose pages may use the client port, like https://chat.example. "
                       "* is any origin, off is no origin. Repeatable."},
                      s.cors_origins);
}

void add_model(SettingTable& table, ModelSettings& s) {
  add_model_name(table, s);
  table.add_integer<std::uint32_t>(
      {"model.max_model_len", "max-model-len", "N",
       "Longest prompt in tokens. 0: the largest limit of the engines that may take requests."},
      s.max_model_len, {0, 100'000'000});
  table.add_size({"model.token_cache_bytes_max", "token-cache-bytes-max", "SIZE",
                  "Memory for the token ids of recent text, which lets the router tokenize a "
                  "conversation's turns only once. 0: no token ids are kept."},
                 s.token_cache_bytes_max, {0, 1024 * kGiB});
}

void add_media(SettingTable& table, MediaSettings& s) {
  table.add_integer<std::uint32_t>(
      {"media.images_max", "media-images-max", "N", "Images per request."}, s.images_max,
      {0, 10'000});
  table.add_size(
      {"media.image_bytes_max", "media-image-bytes-max", "SIZE", "Encoded bytes of one image."},
      s.image_bytes_max, {kKiB, kGiB});
  table.add_duration({"media.connect_timeout", "media-connect-timeout", "TIME",
                      "Time to connect to the host of an image URL."},
                     s.connect_timeout, {10ms, kHour});
  table.add_duration({"media.fetch_timeout", "media-fetch-timeout", "TIME",
                      "Time for the whole download of an image."},
                     s.fetch_timeout, {10ms, kHour});
  table.add_integer<std::uint32_t>(
      {"media.redirects_max", "media-redirects-max", "N", "Redirects followed per download."},
      s.redirects_max, {0, 20});
  table.add_integer<std::uint32_t>(
      {"media.downloads_max", "media-downloads-max", "N", "Downloads at the same time."},
      s.downloads_max, {1, 10'000});
  table.add_size({"media.held_bytes_max", "media-held-bytes-max", "SIZE",
                  "Memory for the downloaded images of all running requests. Above it, requests "
                  "are answered 503."},
                 s.held_bytes_max, {kMiB, 1024 * kGiB});
  table.add_switch({"media.allow_private_addresses", "media-allow-private-addresses", "",
                    "Also fetch images from loopback, private and link-local addresses."},
                   s.allow_private_addresses);
  table.add_enum<MediaForward>(
      {"media.forward", "media-forward", "HOW",
       "How the router sends a fetched image to the engine: as the bytes that it hashed, or as the "
       "client's URL. Use url only if the bytes behind a URL never change."},
      s.forward, {{"bytes", MediaForward::Bytes}, {"url", MediaForward::Url}});
  table.add_enum<MediaProxy>(
      {"media.proxy", "media-proxy", "HOW",
       "environment: images are fetched through http_proxy, https_proxy or all_proxy of the "
       "environment, except from hosts in no_proxy. off: images are fetched directly."},
      s.proxy, {{"environment", MediaProxy::Environment}, {"off", MediaProxy::Off}});
  table.add_text({"media.ca_file", "media-ca-file", "FILE",
                  "PEM file of CA certificates for https hosts of images and for proxies, in "
                  "addition to those in /etc/ssl/certs."},
                 s.ca_file);
}

void add_routing(SettingTable& table, RoutingSettings& s) {
  table.add_enum<Policy>(
      {"routing.policy", "routing-policy", "NAME",
       "How a worker is chosen. kv: the one with the least work, with cached blocks deducted."},
      s.policy,
      {{"kv", Policy::Kv},
       {"round-robin", Policy::RoundRobin},
       {"random", Policy::Random},
       {"least-loaded", Policy::LeastLoaded}});
  table.add_number({"routing.overlap_credit", "routing-overlap-credit", "X",
                    "How much a block on the GPU saves, in blocks of prefill."},
                   s.overlap_credit, {0, 10});
  table.add_number({"routing.host_credit", "routing-host-credit", "X",
                    "How much a block in the engine's host memory saves, in blocks of prefill."},
                   s.host_credit, {0, 10});
  table.add_number({"routing.disk_credit", "routing-disk-credit", "X",
                    "How much a block on the engine's storage saves, in blocks of prefill."},
                   s.disk_credit, {0, 10});
  table.add_number({"routing.prefill_load_scale", "routing-prefill-load-scale", "X",
                    "Weight of prefill blocks in the cost."},
                   s.prefill_load_scale, {0, 1000});
  table.add_number({"routing.decode_load_scale", "routing-decode-load-scale", "X",
                    "Weight of blocks in decode in the cost."},
                   s.decode_load_scale, {0, 1000});
  table.add_number(
      {"routing.recompute_weight", "routing-recompute-weight", "X",
       "Charge, in blocks, for each block that a worker computes although a busier worker holds "
       "it. It is the cost for the requests behind. 0: repeats leave a busy worker sooner."},
      s.recompute_weight, {0, 10});
  table.add_number({"routing.tie_tolerance_blocks", "routing-tie-tolerance-blocks", "X",
                    "Costs within this many blocks of the lowest count as equal. The least busy of "
                    "these workers is chosen."},
                   s.tie_tolerance_blocks, {0, 1'000'000});
  table.add_number({"routing.tie_tolerance_ratio", "routing-tie-tolerance-ratio", "X",
                    "Adds this share of the prompt's blocks to that tolerance."},
                   s.tie_tolerance_ratio, {0, 1});
  table.add_integer<std::uint64_t>(
      {"routing.seed", "routing-seed", "N",
       "Seed of the random choice among equal workers. With --nats, the replica's name is added, "
       "and replicas with the same seed choose differently. 0: another seed at each start."},
      s.seed, {0, std::numeric_limits<std::uint64_t>::max()});
}

Result<Done> check_passed_path(const std::string& path) {
  const bool is_plain = path.starts_with('/') && path.find_first_of("?#%\\ ") == path.npos &&
                        path.find("//") == path.npos && path.find("/./") == path.npos &&
                        path.find("/../") == path.npos && (path == "/" || !path.ends_with('/'));
  if (is_plain) return Done{};
  return client_error(ErrorCode::InvalidArgument,
                      "server.passed_paths: \"" + path +
                          "\" is not a valid path: it must begin with a slash, must not end with "
                          "one, and must have no query, escape, empty or dot segment");
}

Result<Done> check_origins(const std::vector<std::string>& origins) {
  for (const std::string& origin : origins) {
    const std::size_t scheme = origin.find("://");
    const bool is_origin = scheme != origin.npos && scheme > 0 && scheme + 3 < origin.size() &&
                           origin.find_first_of("/?#@ ", scheme + 3) == origin.npos;
    if (is_origin || origin == kAnyOrigin || (origin == kNoOrigin && origins.size() == 1)) continue;
    return client_error(ErrorCode::InvalidArgument,
                        "server.cors_origins: \"" + origin +
                            "\" is not an origin: write scheme://host or scheme://host:port "
                            "without a path, * for any origin, or off alone for no origin");
  }
  return Done{};
}

}  // namespace

SettingTable serve_table(ServeSettings& settings) {
  SettingTable table;
  add_roles(table, settings.roles);
  add_server(table, settings.server);
  add_admin(table, settings.admin);
  add_admin_tokens(table, settings.admin);
  add_model(table, settings.model);
  add_identity(table, settings.identity);
  add_media(table, settings.media);
  add_routing(table, settings.routing);
  table.add_enum<AuditUsage>(
      {"audit.usage", "audit-usage", "HOW",
       "Predictions are compared with the usage that engines report. inject: the router requests "
       "the usage in streams where the client did not, and removes it from the answer. passive: "
       "only where the client requested it."},
      settings.audit.usage, {{"inject", AuditUsage::Inject}, {"passive", AuditUsage::Passive}});
  add_events(table, settings.events);
  add_fleet(table, settings.fleet);
  add_worker_requests(table, settings.fleet);
  add_ready(table, settings.fleet);
  add_nats(table, settings.nats);
  add_replica(table, settings.replica);
  add_stale_after(table, settings.replica);
  add_selection(table, settings.selection);
  add_log(table, settings.log);
  add_worker_list(table, settings.workers);
  return table;
}

Result<Done> check_serve_settings(const ServeSettings& settings, bool has_config_file) {
  SL_TRY(check_model_name(settings.model));
  // If a list of workers may be pushed, a router may start without workers.
  const bool may_be_pushed = !settings.admin.token_file.empty() || !settings.nats.urls.empty();
  SL_TRY(check_selection(settings.roles, settings.selection));
  if (is_router(settings.roles)) {
    if (!may_be_pushed) SL_TRY(check_workers(settings.workers, has_config_file));
  } else if (!settings.workers.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "workers are for the router role, which this process does not have: give "
                        "them to its routers, or give --roles frontend,router");
  }
  if (settings.server.body_bytes_max > settings.server.total_body_bytes_max) {
    return client_error(
        ErrorCode::InvalidArgument,
        "server.body_bytes_max is more than server.total_body_bytes_max, the limit for all bodies "
        "together: lower --body-bytes-max or raise --total-body-bytes-max");
  }
  if (settings.server.memory_bytes_max != 0 && settings.server.memory_bytes_max < kMemoryBytesMin) {
    return client_error(ErrorCode::InvalidArgument,
                        "server.memory_bytes_max is less than 64MiB, which is too little for a "
                        "router: raise --memory-bytes-max or remove it");
  }
  for (const std::string& path : settings.server.passed_paths) SL_TRY(check_passed_path(path));
  SL_TRY(check_origins(settings.server.cors_origins));
  SL_TRY(check_nats(settings.nats));
  SL_TRY(check_agents(settings.workers, settings.nats));
  return check_replica(settings.replica);
}

}  // namespace sightline::contract
