// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/message.h"
#include "common/runtime/task.h"

#include "router/front/proxy/request_trace.h"
#include "router/front/proxy/services.h"
#include "router/front/relay/forward.h"
#include "router/front/retry/budget.h"
#include "router/front/retry/lost_bodies.h"
#include "router/front/retry/rules.h"
#include "router/front/selection/selection.h"
#include "router/prompt/media/media_id.h"

namespace sightline::proxy {

// A request as it came, and whether it may be sent twice.
struct Repeated {
  retry::SentText text;
  retry::Repeatable repeatable = retry::Repeatable::AnotherToo;
};

// What retries of all requests share. Thread safety: as its members.
struct RetryMemory {
  retry::Budget budget;
  retry::LostBodies lost;
};

// The attempts to have one request answered, one after the other: whether there may be another one,
// where it goes, and what the client is told when none is left.
// Thread safety: none; of one request. What it is given outlives it.
class Attempts {
 public:
  Attempts(const Services& services, RetryMemory& memory, RequestTrace& trace,
           const Repeated& request)
      : services_(services),
        memory_(memory),
        trace_(trace),
        text_(request.text),
        repeatable_(request.repeatable),
        place_(memory.budget) {}

  // Whom to send it to, with the work booked. The error of the last attempt if nobody is left, or
  // no other attempt may be made; that of a request that was lost twice before, which is not sent.
  // An inquiry that is out of date is replaced by a new one.
  using Renew = std::function<selection::Inquiry()>;  // by what is served now; none: as it is
  [[nodiscard]] Task<Result<selection::Selection>> choose(selection::Inquiry& inquiry,
                                                          const Renew& renew = {});
  // Notes that it is sent now. This outlives the attempt.
  [[nodiscard]] relay::Attempt begin(const http::Request& http, const selection::Selection& chosen);
  // Notes that the attempt failed. choose() says whether another one may follow.
  void failed(const selection::Selection& chosen, relay::Forwarded failed);

 private:
  struct Failed {
    std::string worker;
    Instant at{};
    relay::Forwarded forwarded;
  };

  // Before the first attempt: false if the request was lost twice before.
  [[nodiscard]] Task<bool> may_be_sent();
  // After a failed attempt.
  [[nodiscard]] Task<bool> may_be_sent_again(const Failed& failure);
  // The body's id, which is computed once and off the I/O thread where the body is large.
  [[nodiscard]] Task<media::MediaId> body_id();

  [[nodiscard]] Task<Result<selection::Selection>> select(selection::Inquiry& inquiry,
                                                          const Renew& renew);
  // The request is harmless.
  void answered();
  // What remains to be told where nobody can take over.
  [[nodiscard]] Error last_word(relay::Forwarded failed);

  const Services& services_;
  RetryMemory& memory_;
  RequestTrace& trace_;
  const retry::SentText text_;
  const retry::Repeatable repeatable_;
  selection::Tried tried_;
  retry::Past past_;
  std::optional<media::MediaId> body_id_;    // once it was needed
  bool is_remembered_ = false;               // among the lost ones; then body_id_ is set
  std::uint32_t counted_ = 0;                // losses that count against it
  Instant began_{};                          // the attempt under way
  std::optional<Failed> failure_;            // the attempt before
  std::optional<relay::Forwarded> refusal_;  // the last that a worker said with a 503
  retry::Budget::Place place_;
};

// What the selector is told at an attempt's end.
selection::Ending ending_of(const relay::Forwarded& forwarded, const RequestTrace& trace);

}  // namespace sightline::proxy
