// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/attempts.h"

#include <algorithm>
#include <utility>

#include "common/contract/metrics_requests.h"
#include "common/contract/names.h"

#include "router/front/proxy/cors.h"

namespace sightline::proxy {
namespace {

// The most renewals of one attempt. At worst the workers are replaced by workers of another block
// size, and then back.
constexpr int kRenewalsMax = 2;
// BLAKE3 hashes 2 GB/s. It hashes this many bytes in 16 ns, the unit of a step's weight.
constexpr std::size_t kHashedBytesPerUnit = 32;

Error lost_twice() {
  return worker_error(
      ErrorCode::Unavailable,
      "engines closed the connection twice without an answer to this request. It is not sent again "
      "unchanged for " +
          std::to_string(retry::LostBodies::kRememberedTime.count()) +
          " minutes: change the request",
      false);
}

// The error if other requests were lost at the same workers. It is unknown which of the requests
// killed the engines.
Error lost_beside_others() {
  return worker_error(
      ErrorCode::Unavailable,
      "engines closed the connection twice without an answer to this request, and to "
      "others at the same time. You may send it again",
      false);
}

// Returns whether a failure says something about the worker. An answer above the router's limit
// does not, and neither does an answer for a client that left.
bool tells_of_worker(const relay::Forwarded& failed) {
  const Error& error = failed.answer.error();
  return error.blame == Blame::Worker && retry::is_failure(failed.ending) &&
         error.code != ErrorCode::TooLarge;
}

}  // namespace

Task<Result<selection::Selection>> Attempts::select(selection::Inquiry& inquiry,
                                                    const Renew& renew) {
  for (int renewals = 0;; ++renewals) {
    inquiry.tried = tried_;
    auto selected = co_await services_.selector.select(inquiry);
    const bool is_out_of_date = !selected.ok() && selected.error().code == ErrorCode::OutOfDate;
    if (!is_out_of_date || !renew || renewals == kRenewalsMax) co_return selected;
    selection::Inquiry renewed = renew();
    // The same size again would give the same error.
    if (renewed.job.block_size == inquiry.job.block_size) co_return selected;
    inquiry = std::move(renewed);
  }
}

Task<Result<selection::Selection>> Attempts::choose(selection::Inquiry& inquiry,
                                                    const Renew& renew) {
  if (!failure_) {
    const bool may_be = co_await may_be_sent();
    if (!may_be) co_return lost_twice();
    auto selected = co_await select(inquiry, renew);
    co_return selected;
  }
  Failed failure = std::move(*std::exchange(failure_, std::nullopt));
  const bool may_be = co_await may_be_sent_again(failure);
  if (!may_be) co_return last_word(std::move(failure.forwarded));
  auto selected = co_await select(inquiry, renew);
  // The last worker's own failure says more than "no worker left".
  if (!selected.ok()) co_return last_word(std::move(failure.forwarded));
  // A request that no worker received adds no load. Only its number of attempts limits it.
  if (failure.forwarded.ending != retry::AttemptOutcome::Unsent && !place_.take()) {
    services_.selector.end(selected->reservation, {});
    services_.metrics.counter(contract::kRetriesRefusedTotal).add();
    co_return last_word(std::move(failure.forwarded));
  }
  trace_.retried(failure.worker, failure.forwarded.answer.error());
  // A later failure may say less than this refusal (last_word()).
  if (failure.forwarded.ending == retry::AttemptOutcome::Declined) {
    refusal_ = std::move(failure.forwarded);
  }
  co_return selected;
}

relay::Attempt Attempts::begin(const http::Request& http, const selection::Selection& chosen) {
  began_ = services_.clock.now();
  ++past_.attempts;
  trace_.sent({.worker = chosen.worker,
               .rank = chosen.rank,
               .overlap_blocks = chosen.overlap_blocks,
               .prompt_blocks = chosen.prompt_blocks,
               .block_size = chosen.block_size,
               .reason = chosen.reason});
  const auto limits = services_.settings.read()->fleet;
  relay::Attempt attempt;
  attempt.pool = &services_.pool;
  attempt.held = services_.answers;
  attempt.now = services_.clock.wall();
  // The client has nothing yet. It cannot send the request again before this call.
  attempt.on_answer = [this] { answered(); };
  attempt.call.endpoint = {chosen.host, chosen.port};
  // After a loss, a closed kept connection would be ambiguous. A new connection is not.
  attempt.call.fresh = past_.losses > 0;
  attempt.call.head = {http.method, http.target,
                       relay::engine_headers(http.headers, trace_.request_id())};
  attempt.call.timeouts.connect = limits.connect_timeout;
  attempt.call.timeouts.write = limits.request_timeout;
  attempt.call.timeouts.first_byte = limits.request_timeout;
  attempt.call.timeouts.between_bytes = limits.request_timeout;
  attempt.answer_headers.set(contract::kRequestIdHeader, trace_.request_id());
  attempt.answer_headers.set(contract::kWorkerHeader, chosen.worker);
  allow_origin(attempt.answer_headers, services_.settings.read()->server.cors_origins,
               http.headers.find("origin"));
  if (chosen.rank) {
    attempt.call.head.headers.set(contract::kEngineRankHeader, std::to_string(*chosen.rank));
    attempt.answer_headers.set(contract::kRankHeader, std::to_string(*chosen.rank));
  }
  if (chosen.block_size > 0) {
    attempt.answer_headers.set(
        contract::kOverlapHeader,
        std::to_string(chosen.overlap_blocks) + "/" + std::to_string(chosen.prompt_blocks));
  }
  return attempt;
}

void Attempts::failed(const selection::Selection& chosen, relay::Forwarded failed) {
  failure_ = Failed{chosen.worker, services_.clock.now(), std::move(failed)};
}

Task<media::MediaId> Attempts::body_id() {
  if (body_id_) co_return *body_id_;
  const auto hash = [this]() -> Result<media::MediaId> { return memory_.lost.id_of(text_.body); };
  // This also runs for a client that has left, because the effects of its request must be
  // remembered.
  const auto hashed =
      co_await offload(services_.pool, text_.body.size() / kHashedBytesPerUnit, {}, hash);
  body_id_ = *hashed;
  co_return *body_id_;
}

Task<bool> Attempts::may_be_sent() {
  // Method, target and size are compared first. Most requests then need no hash.
  if (!memory_.lost.knows_like(text_, services_.clock.now())) co_return true;
  const media::MediaId body = co_await body_id();
  const auto record = memory_.lost.record_of(text_, body, services_.clock.now());
  is_remembered_ = record.is_remembered;
  past_.losses = record.losses;
  if (past_.losses < retry::kLossesMax) co_return true;
  services_.metrics.counter(contract::kLostRequestsTotal, {"refused"}).add();
  trace_.advise({.is_useless_again = true});
  co_return false;
}

Task<bool> Attempts::may_be_sent_again(const Failed& failure) {
  const retry::AttemptOutcome ending = failure.forwarded.ending;
  const retry::Next next = retry::next_after(ending, past_, repeatable_);
  if (retry::is_loss(ending)) {
    const media::MediaId body = co_await body_id();
    is_remembered_ = true;
    counted_ = memory_.lost.add(text_, body,
                                {.worker = failure.worker, .sent = began_, .now = failure.at});
    // Both limits hold: for the losses of this request's own attempts, and for the losses that
    // count against its body.
    past_.losses = std::max(past_.losses + 1, counted_);
  }
  tried_.again = next == retry::Next::SameWorker ? failure.worker : "";
  if (next != retry::Next::SameWorker) tried_.failed.push_back(failure.worker);
  const bool may_be = next != retry::Next::GiveUp && past_.losses < retry::kLossesMax;
  co_return may_be;
}

Error Attempts::last_word(relay::Forwarded failed) {
  if (retry::is_loss(failed.ending) && past_.losses >= retry::kLossesMax) {
    services_.metrics.counter(contract::kLostRequestsTotal, {"stopped"}).add();
    trace_.advise({.is_useless_again = true});
    return counted_ >= retry::kLossesMax ? lost_twice() : lost_beside_others();
  }
  // The refusal of a live worker, which says when to come back, is more helpful than a worker
  // without connection.
  if (failed.ending == retry::AttemptOutcome::Unsent && refusal_) failed = std::move(*refusal_);
  if (failed.ending == retry::AttemptOutcome::Declined) {
    trace_.advise(
        {.retry_after_s = failed.refusal.retry_after_s, .body = std::move(failed.refusal.body)});
  }
  return std::move(failed.answer).error();
}

void Attempts::answered() {
  // An answer proves that the request kills no engine. Its earlier losses must not count.
  past_.losses = 0;
  if (std::exchange(is_remembered_, false)) memory_.lost.answered(text_, *body_id_);
}

selection::Ending ending_of(const relay::Forwarded& forwarded, const RequestTrace& trace) {
  using Kind = selection::Ending::Kind;
  selection::Ending ending{.request_id = trace.request_id()};
  if (forwarded.answer.ok()) {
    ending.kind = Kind::Answered;
    ending.status = forwarded.answer->status;
    ending.usage = forwarded.answer->usage;
    ending.first_token = trace.first_token_after();
  } else if (tells_of_worker(forwarded)) {
    ending.kind = Kind::Failed;
    ending.failure = forwarded.answer.error();
  }
  return ending;
}

}  // namespace sightline::proxy
