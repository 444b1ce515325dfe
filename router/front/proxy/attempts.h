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

// A request as the client sent it, and whether it may be sent twice.
struct Repeated {
  retry::SentText text;
  retry::Repeatable repeatable = retry::Repeatable::AnotherToo;
};

// The state that the retries of all requests share. Thread safety: as its members.
struct RetryMemory {
  retry::RetryBudget budget;
  retry::LostBodies lost;
};

// Makes the attempts of one request, one after the other. It decides whether another attempt may be
// made and which worker gets it. After the last attempt it gives the error for the client.
//
// Not thread-safe: it belongs to one request. Its arguments must live longer.
class Attempts {
 public:
  Attempts(const Deps& services, RetryMemory& memory, RequestTrace& trace, const Repeated& request)
      : services_(services),
        memory_(memory),
        trace_(trace),
        text_(request.text),
        repeatable_(request.repeatable),
        place_(memory.budget) {}

  // Makes an inquiry from what the workers serve now. Without it the inquiry stays.
  using Renew = std::function<selection::Inquiry()>;
  // Chooses a worker for the next attempt and reserves its load. If the inquiry is out of date, a
  // new one from `renew` replaces it. Errors:
  // - the error of the last attempt, if no worker is left or no other attempt may be made,
  // - lost_twice(), if the request was lost twice before. It is then not sent.
  [[nodiscard]] Task<Result<selection::Selection>> choose(selection::Inquiry& inquiry,
                                                          const Renew& renew = {});
  // Records that the request is sent now. This object must live longer than the attempt.
  [[nodiscard]] relay::Attempt begin(const http::Request& http, const selection::Selection& chosen);
  // Records that the attempt failed. choose() decides whether another one may follow.
  void failed(const selection::Selection& chosen, relay::Forwarded failed);

 private:
  // A failed attempt: its worker, the time of the failure and the result of the relay.
  struct Failed {
    std::string worker;
    Instant at{};
    relay::Forwarded forwarded;
  };

  // Decides before the first attempt. Returns false if the request was lost twice before.
  [[nodiscard]] Task<bool> may_be_sent();
  // Decides after a failed attempt.
  [[nodiscard]] Task<bool> may_be_sent_again(const Failed& failure);
  // Returns the id of the body. It is computed once, and on a compute thread if the body is large.
  [[nodiscard]] Task<media::MediaId> body_id();

  // Asks the selector. If the inquiry is out of date, it asks again with a renewed one, a few times
  // at most.
  [[nodiscard]] Task<Result<selection::Selection>> select(selection::Inquiry& inquiry,
                                                          const Renew& renew);
  // The engine has answered, and so the request is harmless.
  void answered();
  // Returns the error for the client if no worker can take over.
  [[nodiscard]] Error last_word(relay::Forwarded failed);

  const Deps& services_;
  RetryMemory& memory_;
  RequestTrace& trace_;
  const retry::SentText text_;
  const retry::Repeatable repeatable_;
  selection::Tried tried_;
  retry::Past past_;
  // Set when it was first needed.
  std::optional<media::MediaId> body_id_;
  // The request is among the lost ones. body_id_ is then set.
  bool is_remembered_ = false;
  // The losses that count against the request.
  std::uint32_t counted_ = 0;
  // The start of the present attempt.
  Instant began_{};
  // The failure of the last attempt.
  std::optional<Failed> failure_;
  // The last answer of a worker with status 503.
  std::optional<relay::Forwarded> refusal_;
  retry::RetryBudget::BudgetSlot place_;
};

// Returns the report to the selector about the end of an attempt.
selection::Ending ending_of(const relay::Forwarded& forwarded, const RequestTrace& trace);

}  // namespace sightline::proxy
