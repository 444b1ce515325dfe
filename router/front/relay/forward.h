// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/byte_budget.h"
#include "common/base/result.h"
#include "common/http/client.h"
#include "common/http/exchange.h"
#include "common/http/message.h"
#include "common/http/server.h"
#include "common/runtime/task.h"

#include "router/front/retry/refusal.h"
#include "router/front/retry/rules.h"
#include "router/openai/usage.h"
#include "router/workers/fleet/life_sign.h"

namespace sightline::relay {

// The largest answer without streaming, in bytes. Long outputs with log probabilities need this.
inline constexpr std::size_t kAnswerBytesMax = 256U << 20U;
// How much of this answer the router holds, in bytes. The client gets a shorter answer with its
// length, and as a whole or not at all. A longer answer is forwarded piece by piece.
inline constexpr std::size_t kAnswerHeldBytesMax = 1U << 20U;
// The largest event of a stream, in bytes.
inline constexpr std::size_t kEventBytesMax = 16U << 20U;
// How much of an event the router holds, in bytes. Longer events are forwarded piece by piece.
inline constexpr std::size_t kEventHeldBytesMax = 64U << 10U;

// One attempt to get an answer from a worker.
struct Attempt {
  // The request to the worker.
  http::Call call;
  // The pool of this I/O thread.
  IoPool* pool = nullptr;
  // Counts the held bytes of the answer. Null: they are not counted.
  ByteBudget* held = nullptr;
  // Raised by every piece of the answer.
  std::shared_ptr<fleet::LifeSign> life;
  // Added to the worker's headers.
  http::Headers answer_headers;
  // For dates in the worker's headers.
  WallTime now{};
  // The router itself requested the closing usage chunk. The client must not get it.
  bool strip_usage = false;
  // Called at the first event of a stream with a payload.
  std::function<void()> on_first_token;
  // Called when the worker has answered and the client has nothing yet. This is at the first event
  // of a stream with a payload, or when another answer is complete. For an answer that the router
  // does not read, it is at the first piece. It may be called several times.
  std::function<void()> on_answer;
};

// The end of an attempt with an answer.
struct AttemptAnswer {
  int status = 0;
  // As the engine reported it.
  std::optional<openai::Usage> usage;
};

// The end of any attempt.
struct Forwarded {
  Result<AttemptAnswer> answer;
  // Without an answer: decides what may follow.
  retry::AttemptOutcome ending = retry::AttemptOutcome::Final;
  // For Declined: what the worker answered.
  retry::WorkerRefusal refusal;
};

// The connection between a request's client and the workers. Not thread-safe: use it on the I/O
// thread of the client's connection.
class Relay {
 public:
  virtual ~Relay() = default;

  // Sets a function to call once when the client leaves, until the next forward(). If the client
  // has left, it is called immediately.
  virtual void on_leave(std::function<void()> left) = 0;
  // As forward() and pass_through() below.
  virtual Task<Forwarded> forward(const Attempt& attempt) = 0;
  virtual Task<Forwarded> pass_through(const Attempt& attempt) = 0;
};

// Sends the request and forwards the worker's answer to the client. Streams are forwarded event by
// event, and other answers as a whole. An answer is forwarded piece by piece if it is longer than
// the held part, or if memory has no room. A client that reads slowly slows down the worker. If the
// client leaves, the worker's request ends immediately.
//
// An Error with an ending other than Final occurred before any byte reached the client. The reason
// is no connection, no answer, an invalid answer, or status 502, 503 or 504. Every other status is
// the worker's answer, which the client gets. A 503 gives Overloaded, a 504 gives Timeout. If the
// worker is lost in the middle of a stream or ends it without [DONE], the client gets an error
// event and no [DONE]. If the client has a part of an event or of another answer, its connection is
// closed before the end. Cancelled means that the client left. Messages contain no address of a
// worker.
Task<Forwarded> forward(http::Client& to_workers, const Attempt& attempt,
                        http::ResponseWriter& client);

// The same for bodies that the router does not read: it forwards bytes as they arrive.
Task<Forwarded> pass_through(http::Client& to_workers, const Attempt& attempt,
                             http::ResponseWriter& client);

// The relay of a client of the HTTP server. Both arguments must live longer.
class HttpRelay : public Relay {
 public:
  HttpRelay(http::Client& to_workers, http::ResponseWriter& client)
      : to_workers_(to_workers), client_(client) {}

  void on_leave(std::function<void()> left) override { client_.on_disconnect(std::move(left)); }
  Task<Forwarded> forward(const Attempt& attempt) override {
    return relay::forward(to_workers_, attempt, client_);
  }
  Task<Forwarded> pass_through(const Attempt& attempt) override {
    return relay::pass_through(to_workers_, attempt, client_);
  }

 private:
  http::Client& to_workers_;
  http::ResponseWriter& client_;
};

// Returns the headers for the worker: the client's own, without the headers of one hop and the
// headers that the router sets itself.
http::Headers engine_headers(const http::Headers& client, std::string_view request_id);

}  // namespace sightline::relay
