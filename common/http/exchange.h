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

struct ExchangeTimeouts {
  Duration connect = std::chrono::seconds(3);        // name resolution and TCP handshake
  Duration write = std::chrono::seconds(30);         // without the server taking a byte
  Duration first_byte = std::chrono::minutes(10);    // request sent to response header complete
  Duration between_bytes = std::chrono::minutes(5);  // quiet time within the body
};

// A request to send. The body's pieces are sent one after the other without copying; all views
// outlive start().
struct Call {
  ServerAddress endpoint;
  RequestHead head;
  std::span<const std::string_view> body;
  ExchangeTimeouts timeouts;
  bool fresh = false;  // on a connection of its own, not on a kept one
};

// How an exchange failed.
enum class Failure {
  None,
  Connect,    // no connection, or none in time: nothing was sent
  Local,      // no connection for want of our own descriptors, memory or ports
  NoAnswer,   // connected and sent (perhaps in part), closed before any byte of the response
  BrokenOff,  // closed before the response's end
  Corrupt,    // bytes that are not HTTP
  TooLarge,   // the response exceeds a limit
  Timeout,    // one of ExchangeTimeouts but connect passed
  Cancelled,  // cancel() was called
};

// One request to an upstream server and its response, read piece by piece: what is not read stays
// with the server (back-pressure). The connection goes back to the pool when the response was read
// to its end and is closed otherwise. A request is sent once: where a pooled connection turns out
// closed before any byte of the response, the server may have read it, or have closed the
// connection before. Only the caller knows whether to send it again; the others in the pool, which
// are likely to be closed too, are dropped.
// Errors are Unavailable, Timeout, Corrupt, TooLarge (blame Worker, retryable unless a response
// byte came), Overloaded (blame Internal, failure Local) and Cancelled; messages name no address.
// Thread safety: none; create, use and destroy it on one I/O thread of the client's pool.
class Exchange {
 public:
  explicit Exchange(Client& client);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Sends the request and reads the response's header; 1xx responses are skipped, 32
  // at most. Once per object.
  Task<Result<Done>> start(const Call& call);

  // After a successful start().
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;

  // The next bytes of the decoded body, valid until the next call; empty at the end of the body.
  Task<Result<std::string_view>> read_some();

  // Ends the exchange at once: a pending start() or read_some() returns Cancelled. From any code of
  // the same I/O thread, such as a disconnect callback.
  void cancel();

  [[nodiscard]] Failure failure() const;
  // True if the failure is Connect because nobody listens there.
  [[nodiscard]] bool connection_refused() const;
  // True if the failure is NoAnswer on a connection that had been used before.
  [[nodiscard]] bool kept_connection_closed() const;
  // True once any byte of a response was received.
  [[nodiscard]] bool response_begun() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The rest of the body in one string with 64 spare bytes. TooLarge beyond bytes_max.
Task<Result<std::string>> read_all(Exchange& exchange, std::size_t bytes_max);

}  // namespace sightline::http
