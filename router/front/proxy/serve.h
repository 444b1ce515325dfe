// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"
#include "common/http/message.h"
#include "common/runtime/task.h"

#include "router/front/proxy/attempts.h"
#include "router/front/proxy/pipeline.h"
#include "router/front/proxy/request_trace.h"
#include "router/front/proxy/services.h"
#include "router/front/relay/forward.h"
#include "router/front/retry/budget.h"
#include "router/openai/request.h"

namespace sightline::proxy {

// Serves requests, from the client's bytes to the last byte of the answer. Thread safety: any I/O
// thread may call the methods. A request stays on its thread.
class Proxy {
 public:
  // The services must live longer.
  explicit Proxy(const Deps& services)
      : services_(services),
        pipeline_(services),
        retries_{{}, retry::LostBodies(services.identity)} {}

  // Serves a chat or completions request in eight steps. After an Error the client has no answer
  // yet, unless it has already received a part.
  Task<Result<Done>> serve(openai::Endpoint endpoint, http::Request& http, relay::Relay& relay,
                           RequestTrace& trace);

  // Serves a request whose prompt the router does not read. It goes to the worker with the least
  // load. Its media are fetched, and members that clients may not use are rejected or removed.
  // Another worker gets it only if no connection was possible, because repeating it may not be
  // safe. A request with a method that changes nothing is also sent again if a kept connection was
  // closed.
  Task<Result<Done>> serve_unread(http::Request& http, relay::Relay& relay, RequestTrace& trace);

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  // Every request is counted in this budget.
  [[nodiscard]] retry::RetryBudget& budget() { return retries_.budget; }

 private:
  const Deps& services_;
  Pipeline pipeline_;
  RetryMemory retries_;
};

}  // namespace sightline::proxy
