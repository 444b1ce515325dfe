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

// The life of a request, from the client's bytes to the last byte of the answer.
// Thread safety: methods on any I/O thread; a request stays on the thread it came to.
class Proxy {
 public:
  explicit Proxy(const Services& services)
      : services_(services),
        pipeline_(services),
        retries_{{}, retry::LostBodies(services.identity)} {}

  // Serves a chat or completions request: the eight steps. An Error means that the client has
  // not been answered yet, unless it has got a part.
  Task<Result<Done>> serve(openai::Endpoint endpoint, http::Request& http, relay::Relay& relay,
                           RequestTrace& trace);

  // Sends a request whose prompt the router does not read to the least loaded worker, its media
  // fetched and what clients may not ask for refused or taken out; to another worker only
  // if that cannot be connected to, as what it does is not known to be repeatable. A method that
  // changes nothing is sent again where a kept connection was closed.
  Task<Result<Done>> serve_unread(http::Request& http, relay::Relay& relay, RequestTrace& trace);

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  // Every request counts itself in.
  [[nodiscard]] retry::Budget& budget() { return retries_.budget; }

 private:
  const Services& services_;
  Pipeline pipeline_;
  RetryMemory retries_;
};

}  // namespace sightline::proxy
