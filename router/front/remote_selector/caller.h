// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/hosts/lookup.h"
#include "common/http/client.h"
#include "common/http/exchange.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/task.h"
#include "common/runtime/token_file.h"

namespace sightline::remote_selector {

// Sends requests to routers over kept connections. Thread safety: call() runs on the pool's I/O
// threads.
class Caller {
 public:
  // Limits for the body of an answer. A selection or an error is short, because their texts are
  // limited. Other answers grow with the number of workers.
  static constexpr std::size_t kShortAnswerBytesMax = 128 << 10;
  static constexpr std::size_t kLongAnswerBytesMax = 32 << 20;

  // The parts that it uses. All must live longer. The first token of `tokens` is sent with each
  // request. If it is null, no token is sent.
  struct Deps {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::TokenFile* tokens;
    const Clock& clock;
  };
  // The options of the client decide how long connections are kept.
  Caller(const Deps& deps, const http::ClientOptions& options);

  // One request.
  struct RouterRequest {
    std::string method;
    std::string target;
    std::string body = {};
    // The entity tag of the answer that the caller has already, or empty.
    std::string known_tag = {};
    std::size_t answer_bytes_max = kShortAnswerBytesMax;
  };
  // One answer, with its entity tag.
  struct RouterAnswer {
    int status = 0;
    std::string body;
    std::string tag;
  };
  // Sends a request and returns the whole answer, if it arrives within the time. The request may be
  // sent twice, if a kept connection was closed before the request arrived. Errors: Timeout without
  // an answer in time, otherwise Unavailable. Their message follows a router's name.
  Task<Result<RouterAnswer>> call(const http::ServerAddress& router, const RouterRequest& question,
                                  Duration time_max);

 private:
  // One attempt of a request.
  struct Try {
    const http::Call& call;
    std::size_t answer_bytes_max;
    Duration time_max;
  };
  // Sends the request once. Sets `was_closed` if a kept connection was closed before the request
  // arrived.
  Task<Result<RouterAnswer>> try_once(const Try& now, bool& was_closed);

  const Deps deps_;
  http::Client client_;
};

}  // namespace sightline::remote_selector
