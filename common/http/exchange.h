// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/client.h"
#include "common/http/message.h"
#include "common/runtime/task.h"

namespace sightline::http {

// The time limits of one exchange.
struct ExchangeTimeouts {
  // Name look-up and TCP handshake.
  Duration connect = std::chrono::seconds(3);
  // While the server takes no byte.
  Duration write = std::chrono::seconds(30);
  // From the end of the request to the end of the response header.
  Duration first_byte = std::chrono::minutes(10);
  // Without a byte within the body.
  Duration between_bytes = std::chrono::minutes(5);
};

// A request to send. The pieces of the body are sent one after the other without a copy. All views
// must stay valid until start() returns.
struct Call {
  ServerAddress endpoint;
  RequestHead head;
  std::span<const std::string_view> body;
  ExchangeTimeouts timeouts;
  // Use a new connection, not an idle one.
  bool fresh = false;
};

// How an exchange failed.
enum class Failure {
  // It has not failed.
  None,
  // There was no connection, or not in time. Nothing was sent.
  Connect,
  // There was no connection because this process lacks descriptors, memory or ports.
  Local,
  // The request was sent, perhaps in part. The server closed before any byte of the response.
  NoAnswer,
  // The server closed before the end of the response.
  BrokenOff,
  // The server sent bytes that are not HTTP.
  Corrupt,
  // The response exceeds a limit.
  TooLarge,
  // A limit of ExchangeTimeouts passed, other than `connect`.
  Timeout,
  // cancel() was called.
  Cancelled,
};

// One request to an upstream server and its response. The caller reads the response piece by piece.
// What it does not read stays with the server (back-pressure). After a complete response the
// connection goes back to the pool. Otherwise it is closed.
//
// A request is sent once. If a pooled connection closes before any byte of the response, the server
// may have read the request, or may have closed the connection before. Only the caller can decide
// whether to send it again. The other pooled connections to this server are probably closed too, so
// they are dropped.
//
// Errors with blame Worker: Unavailable, Timeout, Corrupt, TooLarge. They are retryable unless a
// byte of the response came. Overloaded has blame Internal and failure Local. Cancelled is the last
// one. Messages contain no address.
// Thread safety: create, use and destroy it on one I/O thread of the client's pool.
class Exchange {
 public:
  // The client outlives the exchange.
  explicit Exchange(Client& client);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Sends the request and reads the header of the response. Skips 1xx responses, at most 32. Call
  // it once for each object.
  Task<Result<Done>> start(const Call& call);

  // Valid after start() succeeded.
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;

  // The next bytes of the decoded body, valid until the next call. Empty at the end of the body.
  Task<Result<std::string_view>> read_some();

  // Ends the exchange: a pending start() or read_some() returns Cancelled. From any code of the
  // same I/O thread, for example a disconnect callback.
  void cancel();

  // How the exchange failed, for a caller that decides about a retry.
  [[nodiscard]] Failure failure() const;
  // True if the failure is Connect because no server listens there.
  [[nodiscard]] bool connection_refused() const;
  // True if the failure is NoAnswer on a connection that was used before.
  [[nodiscard]] bool kept_connection_closed() const;
  // True once any byte of a response was received.
  [[nodiscard]] bool response_begun() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the rest of the body into one string with 64 spare bytes, for simdjson's parser. Error:
// TooLarge above bytes_max.
Task<Result<std::string>> read_all(Exchange& exchange, std::size_t bytes_max);

}  // namespace sightline::http
