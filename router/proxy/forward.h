// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/result.h"
#include "common/runtime/task.h"

#include "router/http/client.h"
#include "router/http/exchange.h"
#include "router/http/message.h"
#include "router/http/server.h"
#include "router/openai/usage.h"

namespace sightline::proxy {

// Largest answer that is not a stream, in bytes: long outputs with log probabilities.
inline constexpr std::size_t kAnswerBytesMax = 256U << 20U;
// Largest single event of a stream, in bytes.
inline constexpr std::size_t kEventBytesMax = 16U << 20U;

// One attempt to have a request answered by an engine.
struct Attempt {
  http::Call call;                       // to the engine
  IoPool* pool = nullptr;                // reads large answers beside the I/O threads
  http::Headers answer_headers;          // added to the engine's
  bool strip_usage = false;              // the closing usage chunk was asked for by the router
  std::function<void()> on_first_token;  // the first event of a stream with a payload
};

// How an attempt ended well.
struct Answer {
  int status = 0;
  std::optional<openai::Usage> usage;  // as the engine reported it
};

// Sends the call and passes the engine's answer to the client: streams event by event as they
// come, other answers whole. A client that leaves ends the engine's request at once.
//
// Errors: retryable ones came before any byte reached the client and may be tried elsewhere
// (no connection, no answer, garbage, status 502, 503 or 504). Every other status is the engine's
// answer and reaches the client; a 503 is Overloaded. If the engine is lost in mid-stream, or ends
// a stream without [DONE], the client gets an error event and no [DONE]. Cancelled means the client
// left. Messages name no engine address. Blame Internal: the engine closed a kept connection
// without an answer, and may be tried itself again.
Task<Result<Answer>> forward(http::Client& engines, const Attempt& attempt,
                             http::ResponseWriter& client);

// The same for bodies that the router does not look into: bytes as they come. Retryable is only
// that there was no connection: what else the engine may have begun must not happen twice. A method
// that changes nothing may also be sent again where a kept connection was closed.
Task<Result<Answer>> pass_through(http::Client& engines, const Attempt& attempt,
                                  http::ResponseWriter& client);

// Request headers for the engine: the client's own but for those of one hop and those that the
// router sets anew.
http::Headers engine_headers(const http::Headers& client, std::string_view request_id);

}  // namespace sightline::proxy
