// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/runtime/io_pool.h"

namespace sightline::http {

// Where an HTTP server listens.
struct Endpoint {
  std::string host;  // name or numeric address, IPv6 without brackets
  std::uint16_t port = 80;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// An http:// URL in parts; prefix is its path without the trailing slash ("" or "/base").
struct ServerUrl {
  Endpoint endpoint;
  std::string prefix;
};
// Errors: InvalidArgument (no host, bad port, user info, query), Unsupported (another scheme).
Result<ServerUrl> parse_server_url(std::string_view url);

struct ClientOptions {
  std::size_t idle_per_endpoint_max = 64;  // kept connections per I/O thread and endpoint
  // vLLM closes idle connections after 5 s (VLLM_HTTP_TIMEOUT_KEEP_ALIVE, 0.32); staying below
  // avoids sending into a closing one.
  Duration idle_age_max = std::chrono::seconds(4);
  Duration resolved_age_max = std::chrono::seconds(10);  // addresses of a name are reused so long
  std::size_t response_header_bytes_max = 65536;
  std::size_t response_header_fields_max = 200;
};

// Keep-alive connections to upstream servers, apart for each I/O thread. Idle connections are
// watched: one that the server closes leaves the pool at once.
// Thread safety: an Exchange uses the part of the I/O thread it runs on. Destroy the client after
// IoPool::stop() and before the pool.
class Client {
 public:
  Client(IoPool& pool, const ClientOptions& options);
  ~Client();

  struct Shard;
  // Of the calling I/O thread.
  [[nodiscard]] const std::shared_ptr<Shard>& shard_here();

  // Drops idle connections of an endpoint on all I/O threads. From any thread.
  void forget(const Endpoint& endpoint);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::http
