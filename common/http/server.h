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

// Bounds on what clients may send; each is answered as said and closes the connection. The Error of
// the answer names its limit.
struct ServerLimits {
  std::size_t header_bytes_max = 65536;              // request line and fields: 431
  std::size_t header_fields_max = 100;               // 431
  std::size_t target_bytes_max = 8192;               // 414
  std::size_t body_bytes_max = 64ULL * 1024 * 1024;  // 413
  // Bytes of request bodies in memory, of all connections together, from their arrival to the end
  // of their request: 503. Sizes that a header only announces do not count, or headers without
  // bodies could use it up.
  // A body that could never fit: 413.
  std::size_t total_body_bytes_max = 4ULL * 1024 * 1024 * 1024;
  // Per server. One more has the connection that waits longest for a request closed; where none
  // does, it is answered 503.
  std::size_t connections_max = 16384;
  int descriptor_max = std::numeric_limits<int>::max();  // those above are left for others: 503
  Duration header_timeout = std::chrono::seconds(10);    // first byte to end of header: 408
  Duration body_timeout = std::chrono::seconds(30);      // without a byte of the body: 408
  Duration body_time_max = std::chrono::minutes(10);     // waiting for a body, all in all: 408
  // Waits for a request that are left alone when descriptors run out: a client that has just
  // connected is about to send, and those behind it wait in the kernel's queue.
  Duration idle_kept = std::chrono::seconds(1);
  Duration idle_timeout = std::chrono::seconds(75);   // between requests: closed silently
  Duration write_timeout = std::chrono::seconds(30);  // without the client taking a byte: closed
  // Least rate at which a client sends a body (408) or takes an answer (closed) while it is waited
  // for. It may fall behind by body_timeout or write_timeout, and kRateGraceMax at most of a body.
  std::size_t bytes_per_s_min = 1024;
};

inline constexpr std::chrono::seconds kRateGraceMax{20};

// Of a connection at rest, as measured with 10,000 of them.
inline constexpr std::size_t kConnectionBytes = std::size_t{10} << 10U;

// What a request's header alone decides.
struct Admission {
  std::optional<Response> refusal;  // the whole answer; a body is not read
  // Of this body, where it is less than the server's limit; 0: there may be none.
  std::size_t body_bytes_max = std::numeric_limits<std::size_t>::max();
};

struct ServerOptions {
  std::string host = "127.0.0.1";               // numeric address or name to listen on
  std::uint16_t port = 0;                       // 0: any free port
  std::string port_flags = "--host or --port";  // what to change where the port is taken
  ServerLimits limits;
  // What bodies are charged to besides; outlives the server. Null: to nothing.
  ByteBudget* memory = nullptr;
  // What connections take besides is charged to: kConnectionBytes each, and what a header or a
  // chunked body needs of a buffer beyond that. Without room one that waits for a request gives
  // way, as at connections_max; else the new one is answered 503. Outlives the server; null: to
  // nothing.
  ByteBudget* connection_memory = nullptr;
  // Makes the answer to a request that the server itself refuses; status is final, Error says why.
  // Empty: a JSON object in OpenAI's error shape.
  std::function<Response(int status, const Error& error)> refusal;
  // Looks at each request when its header has come: before "100 Continue", before a byte of its
  // body is read. The request has no body yet, and no handler runs for one that is refused. A
  // refusal closes the connection if the body has not come with the header. On any I/O thread; may
  // be empty.
  std::function<Admission(const Request& head)> admission;
  // Told of each connection that waits because it cannot be accepted, as without a descriptor. On
  // any I/O thread; may be empty.
  std::function<void()> accept_failed;
};

class ServerConnection;

// What a stop leaves to requests that are cut off, to those that are still coming in, and to
// connections without one; all within the time of drain() but the first, which comes on top.
inline constexpr std::chrono::seconds kCutOffGrace{1};
inline constexpr std::chrono::seconds kDrainReadTime{2};
inline constexpr std::chrono::seconds kDrainIdleTime{1};

// Answers one request: either send(), or begin(), write()…, finish(). Writes wait until the
// client's socket took the bytes: a client that does not read holds back the handler, not memory.
// A write to a client that left gives Cancelled, one that makes no progress for the server's write
// timeout gives Timeout; both are the client's blame, and the handler should return.
// A handler that returns without an answer is answered for with 500, if the client is there; one
// that returns in the middle of a body closes the connection, so that the client sees it is
// incomplete.
// Thread safety: none; use it on the I/O thread that runs the handler.
class ResponseWriter {
 public:
  explicit ResponseWriter(ServerConnection& connection) : connection_(&connection) {}

  // The whole answer, with Content-Length. Name the response before the co_await: g++ 12
  // miscompiles a braced Response inside of it.
  Task<Result<Done>> send(Response response);

  // Sends status and header at once; the body follows in chunks.
  Task<Result<Done>> begin(int status, Headers headers);
  // One chunk, handed to the socket as a unit. Empty text writes nothing.
  Task<Result<Done>> write(std::string_view text);
  Task<Result<Done>> finish();

  // Closes the connection without ending the body.
  void abort();

  // True once a byte of the answer may have left.
  [[nodiscard]] bool started() const;
  // True once the client has closed its side or vanished. Closing the sending side alone
  // (shutdown(SHUT_WR)) counts as leaving: it looks the same as a client that ended, and no HTTP
  // client does so while it waits for an answer.
  [[nodiscard]] bool disconnected() const;
  // True once the server's stop cuts the request off. Unless disconnected(), the client is there to
  // be told: the handler has kCutOffGrace to end its answer.
  [[nodiscard]] bool cut_off() const;

  // Calls back once, on this I/O thread and without waiting for a write, when the client closes
  // its side, resets, or the server cuts the request off while the handler runs; at once if that
  // has happened. Replaces the former callback; an empty one takes it away. The callback is dropped
  // when the handler returns. A pipelined next request is no disconnect.
  void on_disconnect(std::function<void()> callback);

 private:
  ServerConnection* connection_;
};

// Answers one request. Runs on the I/O thread that accepted the connection; request and writer
// live until it returns.
using Responder = std::function<Task<void>(Request&, ResponseWriter&)>;

// What to tell the client of a request that the server's stop cuts off; answered 503. `when`:
// "its body had come".
Error stopping_error(std::string_view when);

// HTTP/1.1 (RFC 9112) server: one SO_REUSEPORT listener per I/O thread, keep-alive, pipelining in
// order, 100-continue, TCP_NODELAY. Whatever is ambiguous about a message's framing is refused.
// Thread safety: all methods from a thread that is not of the pool.
class Server {
 public:
  // Errors: Unavailable (cannot listen there), InvalidArgument (host). The pool outlives the
  // server.
  static Result<std::unique_ptr<Server>> create(IoPool& pool, ServerOptions options,
                                                Responder handler);
  // drain(0).
  ~Server();

  struct State;  // opaque; create() makes it
  explicit Server(std::shared_ptr<State> state);

  // The port that was bound.
  [[nodiscard]] std::uint16_t port() const;
  // Requests whose handler runs at this moment.
  [[nodiscard]] std::size_t active_requests() const;

  // Stops accepting and lets running handlers finish for up to timeout, then cuts off what is left
  // (cut_off() becomes true, on_disconnect fires) and closes it. A request that is still coming in
  // has kDrainReadTime to come, then it is answered 503; an idle connection has kDrainIdleTime for
  // a request that the client has sent without knowing, and each answer says "connection: close".
  // What reaches a connection after that, or the listener after its last look at its queue, meets
  // a closed socket: HTTP/1.1 has no way to tell a client beforehand. Zero cuts without a word, as
  // the end of a process does.
  // True if every request ended by itself.
  bool drain(Duration timeout);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sightline::http
