// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>

#include "common/base/result.h"
#include "common/http/message.h"
#include "common/runtime/task.h"

#include "router/front/proxy/forward.h"
#include "router/front/proxy/pipeline.h"
#include "router/front/proxy/request_trace.h"
#include "router/front/proxy/services.h"
#include "router/front/retry/budget.h"
#include "router/front/retry/lost_bodies.h"
#include "router/openai/edits.h"
#include "router/workers/fleet/served.h"

namespace sightline::proxy {

// The life of a request, from the client's bytes to the last byte of the answer.
// Thread safety: methods on any I/O thread; a request stays on the thread it came to.
class Proxy {
 public:
  explicit Proxy(const Services& services)
      : services_(services), pipeline_(services), lost_(services.identity) {}

  // Serves a chat or completions request: the eight steps. An Error means that the client has
  // not been answered yet, unless it has got a part.
  Task<Result<Done>> serve(openai::Endpoint endpoint, http::Request& http, Relay& relay,
                           RequestTrace& trace);

  // Sends a request that the router does not read to the least loaded worker; to another one only
  // if that cannot be connected to, as what it does is not known to be repeatable. A method that
  // changes nothing is sent again where a kept connection was closed.
  Task<Result<Done>> serve_unread(http::Request& http, Relay& relay, RequestTrace& trace);

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  // Every request counts itself in.
  [[nodiscard]] retry::Budget& budget() { return budget_; }

 private:
  using Selection = selection::Selection;

  // An attempt that failed and may be followed by another one.
  struct Failure {
    std::string worker;
    Forwarded forwarded;
  };

  // What has become of a request at engines so far.
  struct Sends {
    Sends(retry::Budget& budget, retry::SentText sent) : text(sent), place(budget) {}

    retry::SentText text;
    selection::Tried tried;
    retry::Repeatable repeatable = retry::Repeatable::AnotherToo;
    retry::Past past;
    Instant began{};                   // the attempt under way
    std::optional<Failure> failure;    // the one before
    std::optional<Forwarded> refusal;  // the last that an engine said with a 503
    retry::Budget::Place place;
  };

  // Steps 4 to 6: whom to send it to, with the work booked. The error of the last attempt if nobody
  // is left, or no other attempt may be made.
  [[nodiscard]] Task<Result<Selection>> choose(selection::Inquiry& inquiry, Sends& sends,
                                               RequestTrace& trace);
  // The client's body as engines of a family get it.
  using Bodies = std::map<contract::EngineFamily, openai::EditedBody>;
  // For the families that there are; downloaded images of many bytes are written into it on the
  // compute threads. Error: Cancelled.
  [[nodiscard]] Task<Result<Bodies>> edit(const openai::Request& request,
                                          const prepare::Prepared& prepared,
                                          const fleet::Served& served, std::stop_token left) const;
  [[nodiscard]] openai::EditedBody edited(const openai::Request& request,
                                          const prepare::Prepared& prepared,
                                          contract::EngineFamily family) const;
  // Edits the body once more where the first worker of a family has joined just now.
  [[nodiscard]] std::vector<std::string_view> pieces_for(Bodies& bodies,
                                                         contract::EngineFamily family,
                                                         const openai::Request& request,
                                                         const prepare::Prepared& prepared) const;
  // Notes that it is sent now.
  [[nodiscard]] Attempt attempt_of(const http::Request& http, const Selection& chosen, Sends& sends,
                                   RequestTrace& trace) const;
  // True if the router has to ask for the usage of a stream itself, to audit its prediction.
  [[nodiscard]] bool asks_for_usage(const openai::Request& request) const;
  // Whether engines gave no answer to this request before. Error: twice, so it is not sent.
  Result<Done> recall(Sends& sends, RequestTrace& trace);
  // After a failed attempt: what the selector is told of it.
  [[nodiscard]] static selection::Ending ending_of(const Forwarded& forwarded,
                                                   const RequestTrace& trace);
  // After a failed attempt: Done if it may be sent once more, else the error for the client.
  Result<Done> try_again(const Selection& chosen, Forwarded failed, Sends& sends,
                         RequestTrace& trace);
  // What remains to be told where nobody can take over.
  [[nodiscard]] Error last_word(Forwarded failed, Sends& sends, RequestTrace& trace) const;
  void settled(const Sends& sends);

  const Services& services_;
  Pipeline pipeline_;
  retry::Budget budget_;
  retry::LostBodies lost_;
};

}  // namespace sightline::proxy
