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

// Largest answer that is not a stream, in bytes: long outputs with log probabilities.
inline constexpr std::size_t kAnswerBytesMax = 256U << 20U;
// Largest part of it that is held: an answer that ends within it reaches the client with its length
// and as a whole, or not at all. What is longer is passed on as it comes.
inline constexpr std::size_t kAnswerHeldBytesMax = 1U << 20U;
// Largest single event of a stream, in bytes.
inline constexpr std::size_t kEventBytesMax = 16U << 20U;
// Largest part of an event that is held. Longer events are passed on as they come.
inline constexpr std::size_t kEventHeldBytesMax = 64U << 10U;

// One attempt to have a request answered by a worker.
struct Attempt {
  http::Call call;                        // to the worker
  IoPool* pool = nullptr;                 // this I/O thread's
  ByteBudget* held = nullptr;             // counts what is held of the answer; null: nothing does
  std::shared_ptr<fleet::LifeSign> life;  // raised by every piece of the answer
  http::Headers answer_headers;           // added to the worker's
  WallTime now{};                         // for dates that a worker names
  bool strip_usage = false;               // the closing usage chunk was asked for by the router
  std::function<void()> on_first_token;   // the first event of a stream with a payload
  // The worker has answered, and the client has nothing of it yet: a stream's first event with a
  // payload, another answer as a whole, the first piece of what is not looked into. Perhaps several
  // times.
  std::function<void()> on_answer;
};

// How an attempt ended well.
struct Answer {
  int status = 0;
  std::optional<openai::Usage> usage;  // as the engine reported it
};

// How an attempt ended.
struct Forwarded {
  Result<Answer> answer;
  retry::Outcome ending = retry::Outcome::Final;  // without an answer: what may follow
  retry::WorkerRefusal refusal;                   // where it was Declined: what the worker said
};

// The way between a request's client and the workers.
// Thread safety: none; on the I/O thread of the client's connection.
class Relay {
 public:
  virtual ~Relay() = default;

  // Calls back once when the client leaves, until the next forward(); at once if it has left.
  virtual void on_leave(std::function<void()> left) = 0;
  // See forward() and pass_through() below.
  virtual Task<Forwarded> forward(const Attempt& attempt) = 0;
  virtual Task<Forwarded> pass_through(const Attempt& attempt) = 0;
};

// Sends the call and passes the worker's answer to the client: streams event by event as they
// come, other answers whole, and what is longer than is held, or than there is memory for, piece by
// piece. A client that does not read holds back the worker. A client that leaves ends the worker's
// request at once.
//
// An Error with another ending than Final came before any byte reached the client: no connection,
// no answer, garbage, status 502, 503 or 504. Every other status is the worker's answer and reaches
// the client; a 503 is Overloaded, a 504 Timeout. If the worker is lost in mid-stream, or ends a
// stream without [DONE], the client gets an error event and no [DONE]; where it has a part of an
// event or of another answer, its connection is closed before the end. Cancelled means the client
// left. Messages name no worker address.
Task<Forwarded> forward(http::Client& to_workers, const Attempt& attempt,
                        http::ResponseWriter& client);

// The same for bodies that the router does not look into: bytes as they come.
Task<Forwarded> pass_through(http::Client& to_workers, const Attempt& attempt,
                             http::ResponseWriter& client);

// That of a client of the HTTP server. Both outlive it.
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

// Request headers for the worker: the client's own but for those of one hop and those that the
// router sets anew.
http::Headers engine_headers(const http::Headers& client, std::string_view request_id);

}  // namespace sightline::relay
