// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "common/base/result.h"
#include "common/runtime/task.h"

#include "router/http/message.h"

namespace sightline::http {

class ServerConnection;

// Answers one request: either send(), or begin(), write()…, finish(). Writes wait until the
// client's socket took the bytes: a client that does not read holds back the handler, not memory.
// A write to a client that left gives Cancelled, one that makes no progress for the server's write
// timeout gives Timeout; both are the client's blame, and the handler should return.
// A handler that returns without an answer is answered for with 500; one that returns in the
// middle of a body closes the connection, so that the client sees it is incomplete.
// Thread safety: none; use it on the I/O thread that runs the handler.
class ResponseWriter {
 public:
  explicit ResponseWriter(ServerConnection& connection) : connection_(&connection) {}

  // The whole answer, with Content-Length.
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
  // True once the client has closed its side or vanished.
  [[nodiscard]] bool disconnected() const;

  // Calls back once, on this I/O thread and without waiting for a write, when the client closes
  // its side, resets, or the server ends the connection while the handler runs; at once if that
  // has happened. Replaces the former callback; an empty one takes it away. The callback is dropped
  // when the handler returns. A pipelined next request is no disconnect, but a client that sends
  // more of those than a header limit's worth is noticed only by writing.
  void on_disconnect(std::function<void()> callback);

 private:
  ServerConnection* connection_;
};

}  // namespace sightline::http
