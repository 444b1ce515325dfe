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

// Asks routers over kept connections.
// Thread safety: call() on the pool's I/O threads.
class Caller {
 public:
  // Of an answer: a selection or an error, whose texts are bounded; what grows with the workers.
  static constexpr std::size_t kShortAnswerBytesMax = 128 << 10;
  static constexpr std::size_t kLongAnswerBytesMax = 32 << 20;

  // All outlive it. The first of the tokens is brought along; null: none.
  struct Around {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::TokenFile* tokens;
    const Clock& clock;
  };
  Caller(const Around& around, const http::ClientOptions& options);

  struct Question {
    std::string method;
    std::string target;
    std::string body = {};
    std::string known_tag = {};  // entity tag of the answer that is known; empty: none
    std::size_t answer_bytes_max = kShortAnswerBytesMax;
  };
  struct Answer {
    int status = 0;
    std::string body;
    std::string tag;
  };
  // The whole answer within the time. What is asked may be asked twice: where a kept connection had
  // been closed before it got there. Errors: why there is none, in words that stand behind a
  // router's name.
  Task<Result<Answer>> call(const http::ServerAddress& router, const Question& question,
                            Duration time_max);

 private:
  struct Try {
    const http::Call& call;
    std::size_t answer_bytes_max;
    Duration time_max;
  };
  Task<Result<Answer>> try_once(const Try& now, bool& was_closed);

  const Around around_;
  http::Client client_;
};

}  // namespace sightline::remote_selector
