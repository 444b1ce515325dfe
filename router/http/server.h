// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/runtime/io_pool.h"

#include "router/http/message.h"
#include "router/http/response_writer.h"

namespace sightline::http {

// Bounds on what a client may send; each is answered as said and closes the connection.
struct ServerLimits {
  std::size_t header_bytes_max = 65536;                // request line and fields: 431
  std::size_t header_fields_max = 100;                 // 431
  std::size_t target_bytes_max = 8192;                 // 414
  std::size_t body_bytes_max = 64ULL * 1024 * 1024;    // 413
  std::size_t connections_max = 16384;                 // per server: 503
  Duration header_timeout = std::chrono::seconds(10);  // first byte to end of header: 408
  Duration body_timeout = std::chrono::seconds(30);    // without a byte of the body: 408
  Duration idle_timeout = std::chrono::seconds(75);    // between requests: closed silently
  Duration write_timeout = std::chrono::seconds(30);   // without the client taking a byte: closed
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // numeric address or name to listen on
  std::uint16_t port = 0;          // 0: any free port
  ServerLimits limits;
  // Makes the answer to a request that the server itself refuses; status is final, Error says why.
  // Empty: a JSON object in OpenAI's error shape.
  std::function<Response(int status, const Error& error)> refusal;
};

// Answers one request. Runs on the I/O thread that accepted the connection; request and writer
// live until it returns.
using Handler = std::function<Task<void>(Request&, ResponseWriter&)>;

// HTTP/1.1 (RFC 9112) server: one SO_REUSEPORT listener per I/O thread, keep-alive, pipelining in
// order, 100-continue, TCP_NODELAY. Whatever is ambiguous about a message's framing is refused.
// Thread safety: all methods from a thread that is not of the pool.
class Server {
 public:
  // Errors: Unavailable (cannot listen there), InvalidArgument (host). The pool outlives the
  // server.
  static Result<std::unique_ptr<Server>> create(IoPool& pool, ServerOptions options,
                                                Handler handler);
  // drain(0).
  ~Server();

  // The port that was bound.
  [[nodiscard]] std::uint16_t port() const;
  // Requests whose handler runs at this moment.
  [[nodiscard]] std::size_t active_requests() const;

  // Stops accepting, closes idle connections, lets running handlers finish for up to timeout, then
  // closes what is left (their on_disconnect fires). True if every request ended by itself.
  bool drain(Duration timeout);

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace sightline::http
