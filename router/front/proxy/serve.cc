// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/serve.h"

#include <stop_token>
#include <utility>
#include <vector>

#include "common/contract/metric_table.h"
#include "common/contract/names.h"

namespace sightline::proxy {
namespace {

// Methods that change nothing on the server (RFC 9110 section 9.2.1).
bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

// The whole life of a request. Each step takes what it needs and gives a new value.
Task<Result<Done>> Proxy::serve(openai::Endpoint endpoint, http::Request& http,
                                http::ResponseWriter& client, RequestTrace& trace) {
  // Until the request is forwarded, which watches for it too: nothing is begun for who has left.
  std::stop_source left;
  client.on_disconnect([left]() mutable { left.request_stop(); });

  // 1 parse: OpenAI JSON to values; the client's bytes are kept.
  auto parsed = co_await pipeline_.parse(endpoint, std::move(http.body), left.get_token());
  if (!parsed.ok()) co_return std::move(parsed).error();
  const openai::Request& request = *parsed;
  trace.parsed(request.stream);
  Sends sends(budget_, {http.method, http.target, request.document.text()});
  SL_CO_TRY(recall(sends, trace));

  // 2 prepare: media to identities and sizes, text to tokens, placeholders expanded.
  auto prepared = co_await pipeline_.prepare(request, left.get_token());
  if (!prepared.ok()) co_return std::move(prepared).error();

  // 3 key: tokens and media to block keys.
  const Keyed keyed = pipeline_.key(request, *prepared);
  trace.prepared(keyed.job.prompt_tokens, keyed.prompt_estimated, prepared->media.size(),
                 prepare::name_of(prepared->gap));

  auto bodies = co_await edit(request, *prepared, left.get_token());
  if (!bodies.ok()) co_return bodies.error();
  for (;;) {
    // 4 match: leading blocks that each worker holds.
    const auto shortlist = pipeline_.match(request, keyed, sends.tried);
    if (!shortlist.ok()) co_return shortlist.error();

    // 5 select: the rank of a worker with the least work.
    const routing::Decision decision = pipeline_.select(keyed, *shortlist, pipeline_.take_turn());
    const Route route = route_of(request, keyed, *shortlist, decision);

    // 6 reserve: book the load before the first byte goes out.
    fleet::Reservation reservation = reserve(route, keyed);

    // 7 forward: the spliced body to the engine, its answer to the client as it comes.
    Attempt attempt = attempt_of(http, route, sends, trace);
    const auto pieces = pieces_for(*bodies, route.target.worker->family, request, *prepared);
    attempt.call.body = pieces;
    attempt.strip_usage = asks_for_usage(request);
    attempt.on_first_token = [&] {
      reservation.first_token();
      trace.first_token();
    };
    auto forwarded = co_await forward(services_.engines, attempt, client);
    if (!forwarded.answer.ok()) {
      SL_CO_TRY(try_again(route, std::move(forwarded), sends, trace));
      continue;
    }

    // 8 account: the prediction against the engine's own count; the reservation ends here.
    settled(sends);
    account(route, *forwarded.answer, trace);
    audit(route, keyed, *forwarded.answer, trace);
    co_return Done{};
  }
}

Task<Result<Done>> Proxy::serve_unread(http::Request& http, http::ResponseWriter& client,
                                       RequestTrace& trace) {
  const std::string_view body[] = {http.body};
  Sends sends(budget_, {http.method, http.target, http.body});
  sends.repeatable = is_safe(http.method) ? retry::Repeatable::WhenKept : retry::Repeatable::Never;
  SL_CO_TRY(recall(sends, trace));
  for (;;) {
    const auto route = least_loaded(sends.tried);
    if (!route.ok()) co_return route.error();
    const fleet::Reservation reservation =
        route->target.rank().load->reserve({}, services_.clock.now());
    Attempt attempt = attempt_of(http, *route, sends, trace);
    attempt.call.body = body;
    auto forwarded = co_await pass_through(services_.engines, attempt, client);
    if (!forwarded.answer.ok()) {
      SL_CO_TRY(try_again(*route, std::move(forwarded), sends, trace));
      continue;
    }
    settled(sends);
    account(*route, *forwarded.answer, trace);
    co_return Done{};
  }
}

}  // namespace sightline::proxy
