// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/names.h"
#include "common/contract/process_settings.h"
#include "common/contract/selection_settings.h"
#include "common/contract/setting_table.h"
#include "common/contract/worker_spec.h"

// All settings of `sightline serve`. This file gives their meaning, unit and default.
// serve_settings.cc has their flags, YAML paths, ranges and help texts.
namespace sightline::contract {

// The least that server.memory_bytes_max may be.
inline constexpr std::uint64_t kMemoryBytesMin = 64 << 20;

// Values of ServerSettings::cors_origins: all origins, no origin.
inline constexpr std::string_view kAnyOrigin = "*";
inline constexpr std::string_view kNoOrigin = "off";

// The client port.
struct ServerSettings {
  std::string host = "127.0.0.1";
  // 0: any free port.
  std::uint16_t port = kServerPort;
  // 0: one for each core.
  std::uint32_t io_threads = 0;
  // 0: one for each core, at least 2.
  std::uint32_t compute_threads = 0;
  // Request line and headers.
  std::uint64_t header_bytes_max = 32 << 10;
  // Body of a request.
  std::uint64_t body_bytes_max = 64 << 20;
  // The limit, in bytes, for all data that clients, engines and peers make the process hold. 0:
  // three quarters of the memory that the process may use.
  std::uint64_t memory_bytes_max = 0;
  // The part for request bodies and the data parsed from them, of all connections. Above: 503
  // with Retry-After.
  std::uint64_t total_body_bytes_max = 4ULL << 30;
  // Above: 503 with Retry-After.
  std::uint32_t connections_max = 16384;
  // Above: 503 with Retry-After.
  std::uint32_t concurrent_requests_max = 4096;
  // From the first byte to the end of the headers.
  milliseconds header_timeout{10'000};
  // A connection without a request, or a stalled body.
  milliseconds idle_timeout{75'000};
  // After SIGTERM, for streams to finish.
  milliseconds drain_timeout{30'000};
  // Paths that the router passes to engines, besides their inference endpoints. "*" means one
  // segment.
  std::vector<std::string> passed_paths;
  // The origins whose pages may use the client port: "scheme://host[:port]", kAnyOrigin, or
  // kNoOrigin alone.
  std::vector<std::string> cors_origins{std::string(kAnyOrigin)};
};

// The model and its tokenizer.
struct ModelSettings : ModelNameSettings {
  // Tokens. 0: the largest that an engine reports.
  std::uint32_t max_model_len = 0;
  // The memory for the token ids of recent text, in bytes. 0: the process tokenizes all text.
  std::uint64_t token_cache_bytes_max = 256 << 20;
};

// How images reach the engine: as bytes that the router has hashed, or as the client's URL.
enum class MediaForward { Bytes, Url };

// Whether downloads use the proxies of http_proxy, https_proxy, all_proxy and no_proxy of the
// environment.
enum class MediaProxy { Environment, Off };

// Limits on the images of requests.
struct MediaSettings {
  // Images of one request.
  std::uint32_t images_max = 64;
  // Encoded bytes of one image.
  std::uint64_t image_bytes_max = 20 << 20;
  // To a media host.
  milliseconds connect_timeout{5'000};
  // A whole download.
  milliseconds fetch_timeout{20'000};
  // Of one download.
  std::uint32_t redirects_max = 10;
  // At the same time.
  std::uint32_t downloads_max = 64;
  // Images of all active requests.
  std::uint64_t held_bytes_max = 512 << 20;
  // Loopback, private and link-local hosts.
  bool allow_private_addresses = false;
  MediaForward forward = MediaForward::Bytes;
  MediaProxy proxy = MediaProxy::Environment;
  // A PEM file, for https in addition to the system's authorities. Empty: only the system's.
  std::string ca_file;
};

// How the router chooses a worker.
enum class Policy { Kv, RoundRobin, Random, LeastLoaded };

// Weights of the cost, in blocks (lower is better), and how ties are broken.
struct RoutingSettings {
  Policy policy = Policy::Kv;
  // Value of a block on the GPU, in blocks.
  double overlap_credit = 1.0;
  // Value of a block in host memory.
  double host_credit = 0.75;
  // Value of a block in storage.
  double disk_credit = 0.25;
  // Weight of prefill work.
  double prefill_load_scale = 1.0;
  // Weight of blocks in decode.
  double decode_load_scale = 1.0;
  // Weight of computing what a busier engine holds.
  double recompute_weight = 1.0;
  // Costs this close to the lowest count as equal.
  double tie_tolerance_blocks = 1.0;
  // Plus this share of the prompt's blocks.
  double tie_tolerance_ratio = 0.02;
  // Of the draw among ties, with the replica's name. 0: any.
  std::uint64_t seed = 0;
};

// How the audit gets the usage of a stream from engines, to compare it with predictions.
enum class AuditUsage {
  // Requests usage if the client did not, and removes the extra chunk from the answer.
  Inject,
  // Reads usage only if the client requested it.
  Passive,
};

struct AuditSettings {
  AuditUsage usage = AuditUsage::Inject;
};

// All settings of `sightline serve`.
struct ServeSettings {
  Roles roles = Roles::Both;
  ServerSettings server;
  AdminSettings admin;
  ModelSettings model;
  IdentitySettings identity;
  MediaSettings media;
  RoutingSettings routing;
  AuditSettings audit;
  EventSettings events;
  FleetSettings fleet;
  NatsSettings nats;
  ReplicaSettings replica;
  SelectionSettings selection;
  LogSettings log;
  // The workers of all sources. Of equal names, the strongest source's.
  std::vector<WorkerSpec> workers;
};

// The table of all settings, bound to `settings`, which must outlive it.
SettingTable serve_table(ServeSettings& settings);

// Checks relations between settings: there are a model directory, and a worker or a configuration
// file that may bring one. Errors: InvalidArgument that names the settings and how to give them.
Result<Done> check_serve_settings(const ServeSettings& settings, bool has_config_file);

}  // namespace sightline::contract
