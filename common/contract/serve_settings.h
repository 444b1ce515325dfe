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

// Every setting of `sightline serve`, once: here its meaning, unit and default; in
// serve_settings.cc its flag, YAML path, range and help text.
namespace sightline::contract {

// The least that server.memory_bytes_max may be.
inline constexpr std::uint64_t kMemoryBytesMin = 64 << 20;

inline constexpr std::string_view kAnyOrigin = "*";
inline constexpr std::string_view kNoOrigin = "off";

// The client port.
struct ServerSettings {
  std::string host = "127.0.0.1";
  std::uint16_t port = kServerPort;           // 0: any free port
  std::uint32_t io_threads = 0;               // 0: one per core
  std::uint32_t compute_threads = 0;          // 0: one per core, at least 2
  std::uint64_t header_bytes_max = 32 << 10;  // request line and headers
  std::uint64_t body_bytes_max = 64 << 20;    // request body
  // All that clients, engines and peers make the process hold; 0: three quarters of the memory
  // that it may have.
  std::uint64_t memory_bytes_max = 0;
  // Of it, request bodies and what is read of them, of all connections together; beyond: 503 with
  // Retry-After.
  std::uint64_t total_body_bytes_max = 4ULL << 30;
  std::uint32_t connections_max = 16384;         // beyond: 503 with Retry-After
  std::uint32_t concurrent_requests_max = 4096;  // beyond: 503 with Retry-After
  milliseconds header_timeout{10'000};           // from the first byte to the end of the headers
  milliseconds idle_timeout{75'000};   // a connection without a request, or a stalled body
  milliseconds drain_timeout{30'000};  // after SIGTERM, for streams to finish
  // Paths that are passed to engines beside their inference endpoints; "*" stands for a segment.
  std::vector<std::string> passed_paths;
  // Origins whose pages may use the client port: "scheme://host[:port]", kAnyOrigin, or kNoOrigin
  // alone.
  std::vector<std::string> cors_origins{std::string(kAnyOrigin)};
};

struct ModelSettings : ModelNameSettings {
  std::uint32_t max_model_len = 0;  // tokens; 0: the longest that an engine reports
  // Memory for the token ids of text that came lately, in bytes; 0: all text is tokenized.
  std::uint64_t token_cache_bytes_max = 256 << 20;
};

// How media reach the engine: as bytes that the router has hashed, or as the client's URL.
enum class MediaForward { Bytes, Url };

// Whether downloads obey http_proxy, https_proxy, all_proxy and no_proxy of the environment.
enum class MediaProxy { Environment, Off };

struct MediaSettings {
  std::uint32_t images_max = 64;             // images per request
  std::uint64_t image_bytes_max = 20 << 20;  // encoded bytes of one image
  milliseconds connect_timeout{5'000};       // to a media host
  milliseconds fetch_timeout{20'000};        // a whole download
  std::uint32_t redirects_max = 10;          // per download
  std::uint32_t downloads_max = 64;          // at the same time
  std::uint64_t held_bytes_max = 512 << 20;  // downloaded images of all requests under way
  bool allow_private_addresses = false;      // loopback, private and link-local hosts
  MediaForward forward = MediaForward::Bytes;
  MediaProxy proxy = MediaProxy::Environment;
  std::string ca_file;  // PEM, trusted beside the system's for https; empty: these alone
};

enum class Policy { Kv, RoundRobin, Random, LeastLoaded };

// Weights of the cost in blocks (lower is better) and how ties are broken.
struct RoutingSettings {
  Policy policy = Policy::Kv;
  double overlap_credit = 1.0;        // worth of a block held on the GPU, in blocks
  double host_credit = 0.75;          // the same on the CPU
  double disk_credit = 0.25;          // the same on storage
  double prefill_load_scale = 1.0;    // weight of prefill work
  double decode_load_scale = 1.0;     // weight of blocks in decode
  double recompute_weight = 1.0;      // of computing again what a busier engine holds
  double tie_tolerance_blocks = 1.0;  // costs this close to the lowest count as equal
  double tie_tolerance_ratio = 0.02;  // plus this share of the prompt's blocks
  std::uint64_t seed = 0;             // of the draw among ties, with the replica's name; 0: any
};

// Where the audit of predictions gets the engines' usage of a stream from.
enum class AuditUsage {
  Inject,   // asks for usage where the client did not, and strips the extra chunk again
  Passive,  // looks only at what the client asked for
};

struct AuditSettings {
  AuditUsage usage = AuditUsage::Inject;
};

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
  std::vector<WorkerSpec> workers;  // of all sources; of the same name the strongest source's
};

// The table of all settings, bound to `settings`, which must outlive it.
SettingTable serve_table(ServeSettings& settings);

// Relations that no single setting can check: a model directory is named, some worker can come.
// Errors: InvalidArgument, naming the settings and how to give them.
Result<Done> check_serve_settings(const ServeSettings& settings, bool has_config_file);

}  // namespace sightline::contract
