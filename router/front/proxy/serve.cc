// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/serve.h"

#include <stop_token>
#include <utility>

#include "common/runtime/freed_aside.h"

#include "router/front/proxy/request_bodies.h"
#include "router/front/selection/selector.h"

namespace sightline::proxy {
namespace {

// Methods that change nothing on the server (RFC 9110 section 9.2.1).
bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

// The whole life of a request. Each step takes what it needs and returns a new value.
Task<Result<Done>> Proxy::serve(openai::Endpoint endpoint, http::Request& http, relay::Relay& relay,
                                RequestTrace& trace) {
  // No step begins for a client that has left. Forwarding has its own check.
  std::stop_source left;
  relay.on_leave([left]() mutable { left.request_stop(); });
  const auto served = services_.served();
  Requester requester{left.get_token(), pipeline_.memory_for(http.body.size())};

  // 1 parse: converts OpenAI's JSON to values. The client's bytes are kept.
  auto parsed = co_await pipeline_.parse(endpoint, std::move(http.body), *served, requester);
  if (!parsed.ok()) co_return std::move(parsed).error();
  openai::ApiRequest& request = *parsed;
  const FreedAside free_request(services_.pool, request, request.document.text().size());
  trace.parsed(request.stream);
  Attempts attempts(services_, retries_, trace,
                    {{http.method, http.target, request.document.text()}});

  // 2 prepare: hashes and measures media, tokenizes the text, expands placeholders.
  auto prepared = co_await pipeline_.prepare(request, *served, requester);
  if (!prepared.ok()) co_return std::move(prepared).error();
  const FreedAside free_prompt(services_.pool, *prepared, prepared->bytes());

  // 3 key: computes block keys from tokens and media.
  auto keyed = co_await pipeline_.key(request, *prepared, *served, requester.left);
  if (!keyed.ok()) co_return keyed.error();
  trace.prepared(*keyed, *prepared);
  // Another block size needs other keys. The prepared prompt stays valid.
  const auto rekeyed = [&] {
    return pipeline_.key(request, *prepared, *services_.served()).inquiry;
  };
  RequestBodies bodies(services_, request, *prepared);
  const auto edited = co_await bodies.edit(*served, requester);
  if (!edited.ok()) co_return edited.error();
  for (;;) {
    // 4 match, 5 select, 6 reserve: chooses the least work, reserves it before any byte is sent.
    const auto chosen = co_await attempts.choose(keyed->inquiry, rekeyed);
    if (!chosen.ok()) co_return chosen.error();
    selection::Reservation reservation(services_.selector, chosen->reservation);

    // 7 forward: sends the edited body to the worker, and its answer to the client as it arrives.
    relay::Attempt attempt = attempts.begin(http, *chosen);
    const auto pieces = bodies.pieces_for(chosen->family);
    attempt.call.body = pieces;
    attempt.life = reservation.life();
    attempt.strip_usage = bodies.asks_for_usage();
    attempt.on_first_token = [&] {
      reservation.first_token();
      trace.first_token();
    };
    auto forwarded = co_await relay.forward(attempt);

    // 8 account: reports the end with the worker's own counts. The reservation ends here.
    reservation.end(ending_of(forwarded, trace));
    if (forwarded.answer.ok()) {
      trace.answered(forwarded.answer->status, forwarded.answer->usage);
      co_return Done{};
    }
    attempts.failed(*chosen, std::move(forwarded));
  }
}

Task<Result<Done>> Proxy::serve_unread(http::Request& http, relay::Relay& relay,
                                       RequestTrace& trace) {
  std::stop_source left;
  relay.on_leave([left]() mutable { left.request_stop(); });
  Requester requester{left.get_token(), pipeline_.memory_for(http.body.size())};

  // 1 parse, 2 prepare: finds the parts of the body that could make an engine connect or load
  // something.
  const std::string content_type(http.headers.find("content-type").value_or(""));
  auto parsed = co_await pipeline_.parse_unread(std::move(http.body), content_type, requester);
  if (!parsed.ok()) co_return std::move(parsed).error();
  const FreedAside free_request(services_.pool, *parsed, parsed->text().size());
  const auto repeatable =
      is_safe(http.method) ? retry::Repeatable::WhenKept : retry::Repeatable::Never;
  Attempts attempts(services_, retries_, trace,
                    {{http.method, http.target, parsed->text()}, repeatable});
  const auto downloads = co_await pipeline_.fetch(parsed->media, left.get_token());
  if (!downloads.ok()) co_return downloads.error();
  const auto body = co_await edit_unread(services_, *parsed, *downloads, requester);
  if (!body.ok()) co_return body.error();
  const auto pieces = body->pieces();

  selection::Inquiry inquiry;
  inquiry.is_read = false;
  for (;;) {
    // 5 select, 6 reserve: chooses the worker with the least load.
    const auto chosen = co_await attempts.choose(inquiry);
    if (!chosen.ok()) co_return chosen.error();
    selection::Reservation reservation(services_.selector, chosen->reservation);

    // 7 forward, 8 account.
    relay::Attempt attempt = attempts.begin(http, *chosen);
    attempt.call.body = pieces;
    attempt.life = reservation.life();
    auto forwarded = co_await relay.pass_through(attempt);
    reservation.end(ending_of(forwarded, trace));
    if (forwarded.answer.ok()) {
      trace.answered(forwarded.answer->status, forwarded.answer->usage);
      co_return Done{};
    }
    attempts.failed(*chosen, std::move(forwarded));
  }
}

}  // namespace sightline::proxy
