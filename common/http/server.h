// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/message.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/task.h"

namespace sightline::http {

// Limits on what clients may send. Above one the server answers with the status given here and
// closes the connection. The Error of the answer names the limit.
struct ServerLimits {
  // Request line and fields: 431.
  std::size_t header_bytes_max = 65536;
  // 431.
  std::size_t header_fields_max = 100;
  // 414.
  std::size_t target_bytes_max = 8192;
  // 413.
  std::size_t body_bytes_max = 64ULL * 1024 * 1024;
  // The bytes of all request bodies in memory, from their arrival to the end of their request: 503.
  // A size that a header only announces does not count, or headers without bodies could use the
  // limit up. A body that can never fit: 413.
  std::size_t total_body_bytes_max = 4ULL * 1024 * 1024 * 1024;
  // Of one server. For one more, the server closes the connection that has waited longest for a
  // request. If no connection waits, it answers the new one 503.
  std::size_t connections_max = 16384;
  // Higher ones are reserved for others: 503.
  int descriptor_max = std::numeric_limits<int>::max();
  // From first byte to end of header: 408.
  Duration header_timeout = std::chrono::seconds(10);
  // Without a byte of the body: 408.
  Duration body_timeout = std::chrono::seconds(30);
  // All waits for one body: 408.
  Duration body_time_max = std::chrono::minutes(10);
  // When descriptors run out, the server does not close connections that have waited for a request
  // less than this. A client that has just connected is about to send, and others wait in the
  // kernel's queue.
  Duration idle_kept = std::chrono::seconds(1);
  // Between requests: closed silently.
  Duration idle_timeout = std::chrono::seconds(75);
  // While the client takes no byte: closed.
  Duration write_timeout = std::chrono::seconds(30);
  // The least rate at which a client sends a body (408) or takes an answer (closed), counted while
  // the server waits for it. It may fall behind by body_timeout or write_timeout, and by at most
  // kRateGraceMax for a body.
  std::size_t bytes_per_s_min = 1024;
};

inline constexpr std::chrono::seconds kRateGraceMax{20};

// The memory of a connection at rest, as measured with 10,000 of them.
inline constexpr std::size_t kConnectionBytes = std::size_t{10} << 10U;

// What the header of a request alone decides.
struct Admission {
  // The whole answer. The server does not read a body.
  std::optional<Response> refusal;
  // A limit on this body, below the server's limit. 0: there may be no body.
  std::size_t body_bytes_max = std::numeric_limits<std::size_t>::max();
};

struct ServerOptions {
  // A numeric address or name to listen on.
  std::string host = "127.0.0.1";
  // 0: any free port.
  std::uint16_t port = 0;
  // Named in the error when the port is in use.
  std::string port_flags = "--host or --port";
  ServerLimits limits;
  // Is charged for bodies, besides total_body_bytes_max. Outlives the server. Null: no charge.
  ByteBudget* memory = nullptr;
  // Is charged for connections: kConnectionBytes each, and the buffer that a header or chunked body
  // needs beyond that. Without room the server closes a waiting connection, as at connections_max,
  // or answers the new one 503. Outlives the server. Null: no charge.
  ByteBudget* connection_memory = nullptr;
  // Makes the answer to a request that the server itself refuses. `status` is final, `error` gives
  // the reason. Empty: a JSON object in OpenAI's error shape.
  std::function<Response(int status, const Error& error)> refusal;
  // Called for each request when its header is complete, before "100 Continue" and before its body
  // is read. The request has no body yet. For a refused request no handler runs. A refusal closes
  // the connection if the body has not come with the header. On any I/O thread. May be empty.
  std::function<Admission(const Request& head)> admission;
  // Called for each connection that waits because it cannot be accepted, for example without a
  // descriptor. On any I/O thread. May be empty.
  std::function<void()> accept_failed;
};

class ServerConnection;

// The times that a stop leaves: to cut-off requests, to requests that are still arriving, and to
// connections without a request. kCutOffGrace comes on top of the time of drain(), the others
// within.
inline constexpr std::chrono::seconds kCutOffGrace{1};
inline constexpr std::chrono::seconds kDrainReadTime{2};
inline constexpr std::chrono::seconds kDrainIdleTime{1};

// Answers one request: either send(), or begin(), write()…, finish(). A write waits until the
// client's socket took the bytes: a slow client blocks the handler instead of filling memory. A
// write returns Cancelled if the client left, and Timeout if it made no progress for the write
// timeout. Both blame the client, and the handler should return. If a handler returns without an
// answer, the server answers 500, if the client is there. If it returns within a body, the server
// closes the connection, which shows the client that the body is incomplete.
// Thread safety: the I/O thread that runs the handler.
class ResponseWriter {
 public:
  explicit ResponseWriter(ServerConnection& connection) : connection_(&connection) {}

  // Sends the whole answer with Content-Length. Name the response before the co_await: g++ 12
  // miscompiles a braced Response inside it.
  Task<Result<Done>> send(Response response);

  // Sends status and header. The body follows in chunks.
  Task<Result<Done>> begin(int status, Headers headers);
  // Sends one chunk, passed to the socket as a unit. Empty text writes nothing.
  Task<Result<Done>> write(std::string_view text);
  // Ends the body.
  Task<Result<Done>> finish();

  // Closes the connection without ending the body.
  void abort();

  // True once a byte of the answer may have been sent.
  [[nodiscard]] bool started() const;
  // True once the client has closed its side or vanished. Closing only the sending side
  // (shutdown(SHUT_WR)) counts too. It looks the same as a client that ended, and no HTTP client
  // does it while it waits for an answer.
  [[nodiscard]] bool disconnected() const;
  // True once the server's stop cuts the request off. Unless disconnected(), the client is still
  // there: the handler has kCutOffGrace to end its answer.
  [[nodiscard]] bool cut_off() const;

  // Calls back once, on this I/O thread, when the client closes its side or resets, or when the
  // server cuts the request off. Does not wait for a write. Calls immediately if it has happened
  // already. Each call replaces the callback, and an empty one removes it. The server drops it when
  // the handler returns. A pipelined next request is no disconnect.
  void on_disconnect(std::function<void()> callback);

 private:
  ServerConnection* connection_;
};

// Answers one request. Runs on the I/O thread that accepted the connection. Request and writer
// exist until it returns.
using Responder = std::function<Task<void>(Request&, ResponseWriter&)>;

// The 503 error of a request that the server's stop cuts off. `when` says at which step, for
// example "its body had come".
Error stopping_error(std::string_view when);

// An HTTP/1.1 server (RFC 9112): one SO_REUSEPORT listener per I/O thread, keep-alive, pipelining
// in order, 100-continue, TCP_NODELAY. It refuses messages whose framing is ambiguous.
// Thread safety: all methods from a thread outside of the pool.
class Server {
 public:
  // Errors: Unavailable (it cannot listen there), InvalidArgument (host). The pool outlives the
  // server.
  static Result<std::unique_ptr<Server>> create(IoPool& pool, ServerOptions options,
                                                Responder handler);
  // Calls drain(0).
  ~Server();

  // Opaque, made by create().
  struct State;
  explicit Server(std::shared_ptr<State> state);

  // The port that was bound.
  [[nodiscard]] std::uint16_t port() const;
  // The requests whose handler runs now.
  [[nodiscard]] std::size_t active_requests() const;

  // Stops accepting and lets running handlers finish for up to `timeout`. Then it cuts off the
  // other requests (cut_off() is true, on_disconnect fires) and closes them. A request still
  // arriving has kDrainReadTime to arrive, then the answer is 503. An idle connection has
  // kDrainIdleTime for a request that was already on its way. Each answer says "connection: close".
  // Later bytes, and later connections, meet a closed socket: HTTP/1.1 cannot warn a client before.
  // A timeout of zero closes without answers, as the end of a process does. Returns true if no
  // request was cut off.
  bool drain(Duration timeout);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sightline::http
