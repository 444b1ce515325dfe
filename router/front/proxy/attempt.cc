// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// The smaller parts of a request's life: what serve() calls between its steps.
#include <utility>

#include "common/base/log.h"
#include "common/contract/metric_table.h"
#include "common/contract/names.h"

#include "router/engine/families/families.h"
#include "router/front/proxy/offload.h"
#include "router/front/proxy/serve.h"

namespace sightline::proxy {
namespace {

Error lost_twice() {
  return worker_error(
      ErrorCode::Unavailable,
      "engines closed the connection without an answer to this request twice; it is not sent again "
      "as it is for " +
          std::to_string(retry::LostBodies::kRememberedTime.count()) +
          " minutes: change the request",
      false);
}

// An answer that is larger than the router takes, or that the client does not want any more, says
// nothing about the worker.
bool tells_of_worker(const Forwarded& failed) {
  const Error& error = failed.answer.error();
  return error.blame == Blame::Worker && retry::is_failure(failed.ending) &&
         error.code != ErrorCode::TooLarge;
}

}  // namespace

bool Proxy::asks_for_usage(const openai::Request& request) const {
  return request.stream && !request.include_usage &&
         services_.settings.audit.usage == contract::AuditUsage::Inject;
}

Task<Result<Proxy::Bodies>> Proxy::edit(const openai::Request& request,
                                        const prepare::Prepared& prepared,
                                        const fleet::Served& served, std::stop_token left) const {
  std::size_t bytes = 0;
  for (const prepare::ResolvedMedia& item : prepared.media) {
    services_.metrics.counter(contract::kMediaItemsTotal, {item.outcome}).add();
    bytes += item.fetched ? item.fetched->size() : 0;
  }
  auto work = [&]() -> Result<Bodies> {
    Bodies bodies;
    for (const auto family : served.families) {
      bodies.emplace(family, edited(request, prepared, family));
    }
    return bodies;
  };
  auto bodies = co_await offload(services_.pool, bytes, std::move(left), std::move(work));
  co_return bodies;
}

openai::EditedBody Proxy::edited(const openai::Request& request, const prepare::Prepared& prepared,
                                 contract::EngineFamily family) const {
  openai::EditedBody body(request.document.text());
  const bool as_bytes = services_.settings.media.forward == contract::MediaForward::Bytes;
  std::vector<std::string> identifiers;
  for (std::size_t i = 0; i < prepared.media.size(); ++i) {
    const prepare::ResolvedMedia& item = prepared.media[i];
    identifiers.push_back(item.identifier);
    if (item.fetched && as_bytes) {
      openai::set_url(body, request.chat()->media[i], prepare::data_url_of(item));
    }
  }
  families::family_of(family).edit(body, request, identifiers);
  if (asks_for_usage(request)) openai::ask_for_usage(body, request);
  return body;
}

std::vector<std::string_view> Proxy::pieces_for(Bodies& bodies, contract::EngineFamily family,
                                                const openai::Request& request,
                                                const prepare::Prepared& prepared) const {
  auto body = bodies.find(family);
  if (body == bodies.end()) {
    body = bodies.emplace(family, edited(request, prepared, family)).first;
  }
  return body->second.pieces();
}

Task<Result<selection::Selection>> Proxy::choose(selection::Inquiry& inquiry, Sends& sends,
                                                 RequestTrace& trace) {
  inquiry.tried = sends.tried;
  auto selected = co_await services_.selector.select(inquiry);
  if (!sends.failure) co_return selected;
  Failure failure = std::move(*std::exchange(sends.failure, std::nullopt));
  // The last worker's own failure says more than "no worker left".
  if (!selected.ok()) co_return last_word(std::move(failure.forwarded), sends, trace);
  // What no engine has got adds no load: it is bounded by its attempts alone.
  if (failure.forwarded.ending != retry::Ending::Unsent && !sends.place.take()) {
    services_.selector.end(selected->reservation, {});
    services_.metrics.counter(contract::kRetriesRefusedTotal).add();
    co_return last_word(std::move(failure.forwarded), sends, trace);
  }
  trace.retried(failure.worker, failure.forwarded.answer.error());
  if (failure.forwarded.ending == retry::Ending::Declined) {
    sends.refusal = std::move(failure.forwarded);
  }
  co_return selected;
}

Attempt Proxy::attempt_of(const http::Request& http, const Selection& chosen, Sends& sends,
                          RequestTrace& trace) const {
  sends.began = services_.clock.now();
  ++sends.past.attempts;
  trace.sent({.worker = chosen.worker,
              .rank = chosen.rank,
              .overlap_blocks = chosen.overlap_blocks,
              .prompt_blocks = chosen.prompt_blocks,
              .block_size = chosen.block_size,
              .reason = chosen.reason});
  const auto& limits = services_.settings.fleet;
  Attempt attempt;
  attempt.pool = &services_.pool;
  attempt.now = services_.clock.wall();
  attempt.call.endpoint = {chosen.host, chosen.port};
  // Once a request was lost, nothing may be left to the doubt that a kept connection brings.
  attempt.call.fresh = sends.past.losses > 0;
  attempt.call.head = {http.method, http.target, engine_headers(http.headers, trace.request_id())};
  attempt.call.timeouts.connect = limits.connect_timeout;
  attempt.call.timeouts.write = limits.request_timeout;
  attempt.call.timeouts.first_byte = limits.request_timeout;
  attempt.call.timeouts.between_bytes = limits.request_timeout;
  attempt.answer_headers.set(contract::kRequestIdHeader, trace.request_id());
  attempt.answer_headers.set(contract::kWorkerHeader, chosen.worker);
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

Result<Done> Proxy::recall(Sends& sends, RequestTrace& trace) {
  sends.past.losses = lost_.losses_of(sends.text, services_.clock.now());
  if (sends.past.losses < retry::kLossesMax) return Done{};
  services_.metrics.counter(contract::kLostRequestsTotal, {"refused"}).add();
  trace.advise({.is_useless_again = true});
  return lost_twice();
}

selection::Ending Proxy::ending_of(const Forwarded& forwarded, const RequestTrace& trace) {
  using Kind = selection::Ending::Kind;
  selection::Ending ending{.request_id = trace.request_id()};
  if (forwarded.answer.ok()) {
    ending.kind = Kind::Answered;
    ending.status = forwarded.answer->status;
    ending.usage = forwarded.answer->usage;
  } else if (tells_of_worker(forwarded)) {
    ending.kind = Kind::Failed;
    ending.failure = forwarded.answer.error();
  }
  return ending;
}

Result<Done> Proxy::try_again(const Selection& chosen, Forwarded failed, Sends& sends,
                              RequestTrace& trace) {
  const retry::Next next = retry::next_after(failed.ending, sends.past, sends.repeatable);
  if (retry::is_loss(failed.ending)) {
    const auto known = lost_.add(sends.text, sends.began, services_.clock.now());
    sends.past.losses = std::max(sends.past.losses + 1, known);
  }
  sends.tried.again = next == retry::Next::SameWorker ? chosen.worker : "";
  if (next != retry::Next::SameWorker) sends.tried.failed.push_back(chosen.worker);
  if (next == retry::Next::GiveUp || sends.past.losses >= retry::kLossesMax) {
    return last_word(std::move(failed), sends, trace);
  }
  sends.failure = Failure{chosen.worker, std::move(failed)};
  return Done{};
}

Error Proxy::last_word(Forwarded failed, Sends& sends, RequestTrace& trace) const {
  if (retry::is_loss(failed.ending) && sends.past.losses >= retry::kLossesMax) {
    services_.metrics.counter(contract::kLostRequestsTotal, {"stopped"}).add();
    trace.advise({.is_useless_again = true});
    return lost_twice();
  }
  // An engine that lives and says when to come back tells more than one that is not there.
  if (failed.ending == retry::Ending::Unsent && sends.refusal) failed = std::move(*sends.refusal);
  if (failed.ending == retry::Ending::Declined) {
    trace.advise(
        {.retry_after_s = failed.refusal.retry_after_s, .body = std::move(failed.refusal.body)});
  }
  return std::move(failed.answer).error();
}

void Proxy::settled(const Sends& sends) {
  if (sends.past.losses > 0) lost_.answered(sends.text, services_.clock.now());
}

}  // namespace sightline::proxy
