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

std::uint64_t usable_blocks(const routing::Candidate& candidate) {
  return std::uint64_t{candidate.gpu_blocks} + candidate.cpu_blocks + candidate.storage_blocks;
}

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
                                        std::stop_token left) const {
  std::size_t bytes = 0;
  for (const prepare::ResolvedMedia& item : prepared.media) {
    services_.metrics.counter(contract::kMediaItemsTotal, {item.outcome}).add();
    bytes += item.fetched ? item.fetched->size() : 0;
  }
  auto work = [&]() -> Result<Bodies> {
    Bodies bodies;
    for (const auto& worker : services_.fleet.snapshot()->workers) {
      if (bodies.contains(worker->family)) continue;
      bodies.emplace(worker->family, edited(request, prepared, worker->family));
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

Proxy::Route Proxy::route_of(const openai::Request& request, const Keyed& keyed,
                             const Shortlist& shortlist, const routing::Decision& decision) const {
  Route route;
  route.target = shortlist.targets[decision.chosen];
  route.candidate = shortlist.candidates[decision.chosen];
  route.removals = shortlist.removals;
  route.adapter = shortlist.adapter;
  route.asked = shortlist.asked;
  Expectation& expectation = route.expectation;
  expectation.worker = route.target.worker->name;
  expectation.rank = route.target.rank_number();
  expectation.overlap_blocks = usable_blocks(route.candidate);
  expectation.prompt_blocks = keyed.blocks.keys.size();
  expectation.block_size = keyed.job.block_size;
  expectation.reason = routing::name_of(decision.reason);
  const auto cache = precise_cache(route.target, keyed.job.block_size);
  const auto family = static_cast<std::size_t>(route.target.worker->family);
  if (cache && keyed.exact && !keyed.unpredictable[family] && request.samples == 1) {
    route.audited = *cache;
  }
  return route;
}

Result<Proxy::Route> Proxy::least_loaded(const Tried& tried) const {
  const auto fleet = services_.fleet.snapshot();
  Route route;
  std::uint32_t least = 0;
  for (const Target& target : targets_for(*fleet, tried, std::nullopt)) {
    const std::uint32_t in_flight = target.rank().load->read(services_.clock.now()).in_flight;
    if (route.target.worker && in_flight >= least) continue;
    route.target = target;
    least = in_flight;
  }
  if (!route.target.worker) return no_worker();
  route.expectation = {.worker = route.target.worker->name,
                       .rank = route.target.rank_number(),
                       .reason = "least_loaded"};
  return route;
}

fleet::Reservation Proxy::reserve(const Route& route, const Keyed& keyed) const {
  const std::uint64_t reused = usable_blocks(route.candidate);
  const std::uint64_t reused_tokens = reused * keyed.job.block_size;
  const fleet::Booking booking{
      .prefill_tokens = keyed.job.prompt_tokens - std::min(keyed.job.prompt_tokens, reused_tokens),
      .blocks = routing::touched_blocks(keyed.job) - reused,
      .block_size = keyed.job.block_size};
  return route.target.rank().load->reserve(booking, services_.clock.now());
}

Attempt Proxy::attempt_of(const http::Request& http, const Route& route, Sends& sends,
                          RequestTrace& trace) const {
  sends.began = services_.clock.now();
  ++sends.past.attempts;
  trace.sent(route.expectation);
  const auto& limits = services_.settings.fleet;
  const fleet::Worker& worker = *route.target.worker;
  Attempt attempt;
  attempt.pool = &services_.pool;
  attempt.now = services_.clock.wall();
  attempt.life = worker.life;
  attempt.call.endpoint = {worker.host, worker.port};
  // Once a request was lost, nothing may be left to the doubt that a kept connection brings.
  attempt.call.fresh = sends.past.losses > 0;
  attempt.call.head = {http.method, http.target, engine_headers(http.headers, trace.request_id())};
  attempt.call.timeouts.connect = limits.connect_timeout;
  attempt.call.timeouts.write = limits.request_timeout;
  attempt.call.timeouts.first_byte = limits.request_timeout;
  attempt.call.timeouts.between_bytes = limits.request_timeout;
  attempt.answer_headers.set(contract::kRequestIdHeader, trace.request_id());
  attempt.answer_headers.set(contract::kWorkerHeader, worker.name);
  if (const auto rank = route.target.rank_number()) {
    attempt.call.head.headers.set(contract::kEngineRankHeader, std::to_string(*rank));
    attempt.answer_headers.set(contract::kRankHeader, std::to_string(*rank));
  }
  if (route.expectation.block_size > 0) {
    attempt.answer_headers.set(contract::kOverlapHeader,
                               std::to_string(route.expectation.overlap_blocks) + "/" +
                                   std::to_string(route.expectation.prompt_blocks));
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

Result<Done> Proxy::try_again(const Route& route, Forwarded failed, Sends& sends,
                              RequestTrace& trace) {
  const std::string& name = route.target.worker->name;
  const Error& error = failed.answer.error();
  if (tells_of_worker(failed)) services_.fleet.report_failure(name, error);
  const retry::Next next = retry::next_after(failed.ending, sends.past, sends.repeatable);
  if (retry::is_loss(failed.ending)) {
    const auto known = lost_.add(sends.text, sends.began, services_.clock.now());
    sends.past.losses = std::max(sends.past.losses + 1, known);
  }
  sends.tried.again = next == retry::Next::SameWorker ? name : "";
  if (next != retry::Next::SameWorker) sends.tried.failed.push_back(name);
  const bool is_over = next == retry::Next::GiveUp || sends.past.losses >= retry::kLossesMax;
  // The last worker's own failure says more than "no worker left".
  if (is_over || targets_for(*services_.fleet.snapshot(), sends.tried, route.adapter).empty()) {
    return last_word(std::move(failed), sends, trace);
  }
  // What no engine has got adds no load: it is bounded by its attempts alone.
  if (failed.ending != retry::Ending::Unsent && !sends.place.take()) {
    services_.metrics.counter(contract::kRetriesRefusedTotal).add();
    return last_word(std::move(failed), sends, trace);
  }
  trace.retried(name, error);
  if (failed.ending == retry::Ending::Declined) sends.refusal = std::move(failed);
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

void Proxy::account(const Route& route, const Answer& answer, RequestTrace& trace) const {
  // A 500 may be the request's own fault (vLLM 0.32: a media host that refuses), so it neither
  // proves nor disproves the worker's health.
  if (answer.status < 500) services_.fleet.report_success(route.target.worker->name);
  trace.answered(answer.status, answer.usage);
}

// The engine's own count is the truth. Answers without usage (errors, clients that left) prove
// nothing.
void Proxy::audit(const Route& route, const Keyed& keyed, const Answer& answer,
                  const RequestTrace& trace) const {
  const Expectation& expected = route.expectation;
  if (answer.status != 200 || !answer.usage || !route.audited) return;
  const openai::Usage& usage = *answer.usage;
  const bool same_prompt = usage.prompt_tokens == keyed.job.prompt_tokens;
  if (!same_prompt) {
    services_.metrics.counter(contract::kPromptTokenMismatchTotal, {expected.worker}).add();
    log(LogLevel::Warn, "the engine counts other prompt tokens than the router",
        {{"request_id", trace.request_id()},
         {"worker", expected.worker},
         {"engine_tokens", usage.prompt_tokens},
         {"router_tokens", keyed.job.prompt_tokens}});
  }
  const std::span claimed(keyed.blocks.keys);
  const fleet::Worker& worker = *route.target.worker;
  services_.audit.compare(
      {.request_id = trace.request_id(),
       .worker = expected.worker,
       .engine = *route.audited,
       .predicted = expected.overlap_blocks * keyed.job.block_size,
       .actual = usage.cached_tokens,
       .leaves_zero_out = families::family_of(worker.family).leaves_zero_out(worker.version),
       .same_prompt = same_prompt,
       .busy = route.candidate.in_flight > 0,
       .blocks = claimed.first(expected.overlap_blocks),
       .removals = route.removals,
       .decided = route.asked});
}

}  // namespace sightline::proxy
