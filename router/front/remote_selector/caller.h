// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

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
  // Both outlive it. The first of the tokens is brought along; null: none.
  Caller(IoPool& pool, hosts::Lookup& names, runtime::TokenFile* tokens);

  struct Question {
    std::string method;
    std::string target;
    std::string body = {};
    std::string known_tag = {};  // entity tag of the answer that is known; empty: none
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
  Task<Result<Answer>> try_once(const http::Call& call, Duration time_max, bool& was_closed);

  IoPool& pool_;
  http::Client client_;
  runtime::TokenFile* const tokens_;
};

}  // namespace sightline::remote_selector
