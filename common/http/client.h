// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <asio/ip/tcp.hpp>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/hosts/lookup.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/task.h"

namespace sightline::http {

// Where an HTTP server listens.
struct ServerAddress {
  std::string host;  // name or numeric address, IPv6 without brackets
  std::uint16_t port = 80;
  friend auto operator<=>(const ServerAddress&, const ServerAddress&) = default;
};

struct ClientOptions {
  std::size_t idle_per_endpoint_max = 64;  // kept connections per I/O thread and endpoint
  // vLLM closes idle connections after 5 s (VLLM_HTTP_TIMEOUT_KEEP_ALIVE, 0.32); staying below
  // avoids sending into a closing one.
  Duration idle_age_max = std::chrono::seconds(4);
  std::size_t idle_per_thread_max = 256;  // of all endpoints together
  // Connections with a higher descriptor are not used: those are left for others in the process.
  int descriptor_max = std::numeric_limits<int>::max();
  // How long the last good addresses of a name wait for the look-up of the present ones.
  Duration lookup_patience = std::chrono::milliseconds(500);
  std::size_t response_header_bytes_max = 65536;
  std::size_t response_header_fields_max = 200;
};

class Wire;
class Connections;

// Keep-alive connections to upstream servers, apart for each I/O thread. Idle connections are
// watched: one that the server closes leaves the pool at once.
// Thread safety: an Exchange uses the part of the I/O thread it runs on. Destroy the client after
// IoPool::stop() and before the pool.
class Client {
 public:
  // Outlived by the names; stop these before the pool is destroyed.
  Client(IoPool& pool, const ClientOptions& options, hosts::Lookup& names);
  // With look-ups of its own.
  Client(IoPool& pool, const ClientOptions& options);
  ~Client();

  // Drops the idle connections to an endpoint on all I/O threads. From any thread.
  void forget(const ServerAddress& endpoint);

  // For Exchange.
  [[nodiscard]] const std::shared_ptr<Connections>& connections() const { return connections_; }

 private:
  std::unique_ptr<hosts::Lookup> names_;
  std::shared_ptr<Connections> connections_;
};

// An attempt to connect that can be given up.
class Dial {
 public:
  // Ends the attempt at once; it may resume the dialling coroutine before returning.
  void stop();
  // True if nobody listens at any of the endpoint's addresses.
  [[nodiscard]] bool refused() const { return refused_ && !stopped_; }
  // True if none of the endpoint's addresses could be tried for want of means of our own.
  [[nodiscard]] bool is_local() const { return local_ && !stopped_; }

 private:
  friend class Connections;
  struct Lookup;
  std::shared_ptr<Lookup> lookup_;
  std::shared_ptr<Wire> wire_;
  bool stopped_ = false;
  bool refused_ = false;
  bool local_ = false;
};

// The pools behind a Client. Thread safety: all methods but forget() on I/O threads of the pool;
// each works on the part of the calling thread.
class Connections : public std::enable_shared_from_this<Connections> {
 public:
  Connections(IoPool& pool, const ClientOptions& options, hosts::Lookup& names);
  ~Connections();

  [[nodiscard]] const ClientOptions& options() const;
  // A kept connection, the one used last first; null if there is none. Those that the server has
  // closed, or whose time is up, are dropped.
  std::shared_ptr<Wire> take_idle(const ServerAddress& endpoint);
  // Keeps a connection on which a response has been read to its end.
  void keep(const ServerAddress& endpoint, std::shared_ptr<Wire> wire);
  // A new connection within the timeout. Errors: Unavailable, Timeout, Cancelled (blame Worker);
  // Overloaded (blame Internal) for want of descriptors, memory or ports of our own.
  Task<Result<std::shared_ptr<Wire>>> connect(const ServerAddress& endpoint, Duration timeout,
                                              Dial& dial);
  void forget(const ServerAddress& endpoint);
  // The same for the connections of this I/O thread, at once.
  void forget_here(const ServerAddress& endpoint);

 private:
  struct Shard;
  struct State;
  Shard& shard_here();
  Task<std::vector<asio::ip::address>> resolve(const std::string& host, Dial& dial);
  std::unique_ptr<State> state_;
};

}  // namespace sightline::http
