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

// The address on which an HTTP server listens.
struct ServerAddress {
  // A name or numeric address, IPv6 without brackets.
  std::string host;
  std::uint16_t port = 80;
  friend auto operator<=>(const ServerAddress&, const ServerAddress&) = default;
};

// Limits of the connections to upstream servers.
struct ClientOptions {
  // The idle connections that each I/O thread keeps for one endpoint.
  std::size_t idle_per_endpoint_max = 64;
  // The most that a connection idles before it is closed. vLLM closes idle connections after 5 s
  // (VLLM_HTTP_TIMEOUT_KEEP_ALIVE, 0.32). A smaller value avoids requests on a connection that the
  // server is closing.
  Duration idle_age_max = std::chrono::seconds(4);
  // The idle connections of one I/O thread, for all endpoints together.
  std::size_t idle_per_thread_max = 256;
  // Connections with a descriptor at or above this number are not used: they are reserved for other
  // parts of the process.
  int descriptor_max = std::numeric_limits<int>::max();
  // How long a connect waits for a name's present addresses if it has addresses of an earlier
  // look-up.
  Duration lookup_patience = std::chrono::milliseconds(500);
  // Limits on the header of a response.
  std::size_t response_header_bytes_max = 65536;
  std::size_t response_header_fields_max = 200;
};

class Wire;
class Connections;

// Keep-alive connections to upstream servers. Each I/O thread has its own, so they need no locks.
// The client watches idle connections: one that the server closes leaves the pool immediately.
// Thread safety: an Exchange uses the connections of the I/O thread on which it runs. Destroy the
// client after IoPool::stop() and before the pool.
class Client {
 public:
  // The client must outlive the look-ups of `names`: stop these before the pool is destroyed.
  Client(IoPool& pool, const ClientOptions& options, hosts::Lookup& names);
  // Creates its own look-ups.
  Client(IoPool& pool, const ClientOptions& options);
  ~Client();

  // Closes the idle connections to an endpoint on all I/O threads. Returns before they are closed.
  // From any thread.
  void forget(const ServerAddress& endpoint);

  // For Exchange only.
  [[nodiscard]] const std::shared_ptr<Connections>& connections() const { return connections_; }

 private:
  std::unique_ptr<hosts::Lookup> names_;
  std::shared_ptr<Connections> connections_;
};

// An attempt to connect, which can be stopped.
// Thread safety: the I/O thread of the attempt.
class Dial {
 public:
  // Ends the attempt. It may resume the dialling coroutine before it returns, which may destroy
  // this object.
  void stop();
  // True if each address of the endpoint refused the connection: no server listens there.
  [[nodiscard]] bool refused() const { return refused_ && !stopped_; }
  // True if no address could be tried because this process lacks descriptors, memory or ports.
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

// The pools behind a Client.
// Thread safety: all methods but forget() on I/O threads of the pool. Each works on the part of the
// calling thread.
class Connections : public std::enable_shared_from_this<Connections> {
 public:
  Connections(IoPool& pool, const ClientOptions& options, hosts::Lookup& names);
  ~Connections();

  [[nodiscard]] const ClientOptions& options() const;
  // Returns an idle connection, the most recently used first, or null. Closes connections that the
  // server has closed or whose time is up.
  std::shared_ptr<Wire> take_idle(const ServerAddress& endpoint);
  // Keeps a connection on which a response has been read to its end. Closes it if the pool is full.
  void keep(const ServerAddress& endpoint, std::shared_ptr<Wire> wire);
  // Opens a new connection within the timeout, which includes the name's look-up. Errors with blame
  // Worker: Unavailable, Timeout, Cancelled. Overloaded with blame Internal: this process lacks
  // descriptors, memory or ports.
  Task<Result<std::shared_ptr<Wire>>> connect(const ServerAddress& endpoint, Duration timeout,
                                              Dial& dial);
  // Closes the idle connections to an endpoint, on all I/O threads. From any thread.
  void forget(const ServerAddress& endpoint);
  // Closes them on the calling I/O thread, before it returns.
  void forget_here(const ServerAddress& endpoint);

 private:
  struct Shard;
  struct State;
  Shard& shard_here();
  Task<std::vector<asio::ip::address>> resolve(const std::string& host, Dial& dial);
  std::unique_ptr<State> state_;
};

}  // namespace sightline::http
