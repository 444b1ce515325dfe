// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/caller.h"

#include <array>
#include <utility>

#include "common/runtime/deadlines.h"

namespace sightline::remote_selector {
namespace {

using http::Failure;

bool is_silence(const http::Exchange& exchange) {
  return exchange.failure() == Failure::Cancelled || exchange.failure() == Failure::Timeout;
}

// The words follow a router's name in logs. Clients may get them without this name.
std::string describe_failure(const http::Exchange& exchange, const Error& error) {
  if (error.blame == Blame::Internal) return error.message;
  if (exchange.connection_refused()) return "connection refused";
  if (is_silence(exchange)) return "no answer in time";
  switch (exchange.failure()) {
    case Failure::Connect:
      return "not reachable";
    case Failure::NoAnswer:
    case Failure::BrokenOff:
      return "connection broke off";
    default:
      return error.message;
  }
}

}  // namespace

Caller::Caller(const Deps& deps, const http::ClientOptions& options)
    : deps_(deps), client_(deps.pool, options, deps.names) {}

Task<Result<Caller::RouterAnswer>> Caller::call(const http::ServerAddress& router,
                                                const RouterRequest& question, Duration time_max) {
  http::Call call;
  call.endpoint = router;
  call.head.method = question.method;
  call.head.target = question.target;
  if (!question.body.empty()) call.head.headers.set("content-type", "application/json");
  if (!question.known_tag.empty()) call.head.headers.set("if-none-match", question.known_tag);
  if (deps_.tokens != nullptr) {
    call.head.headers.set("authorization", "Bearer " + deps_.tokens->first());
  }
  const std::array<std::string_view, 1> body = {question.body};
  call.body = body;
  call.timeouts = {
      .connect = time_max, .write = time_max, .first_byte = time_max, .between_bytes = time_max};
  // The second attempt has only the time that the first one left.
  const Instant end = deps_.clock.now() + time_max;
  bool was_closed = false;
  auto answer = co_await try_once({call, question.answer_bytes_max, time_max}, was_closed);
  const Duration left = end - deps_.clock.now();
  if (answer.ok() || !was_closed || left <= Duration::zero()) co_return answer;
  // A new connection. The other kept ones may be closed too.
  call.fresh = true;
  auto again = co_await try_once({call, question.answer_bytes_max, left}, was_closed);
  co_return again;
}

Task<Result<Caller::RouterAnswer>> Caller::try_once(const Try& now, bool& was_closed) {
  http::Exchange exchange(client_);
  Deadline deadline(deps_.pool.deadlines(deps_.pool.index_here()),
                    [&exchange] { exchange.cancel(); });
  deadline.set(now.time_max);
  // Timeout has a meaning of its own: a silent router may be slow, not gone.
  const auto unavailable = [&exchange](const Error& error) {
    const ErrorCode code = is_silence(exchange) ? ErrorCode::Timeout : ErrorCode::Unavailable;
    return Error{code, Blame::Internal, true, describe_failure(exchange, error), "", ""};
  };
  const auto started = co_await exchange.start(now.call);
  was_closed = exchange.kept_connection_closed();
  if (!started.ok()) co_return unavailable(started.error());
  RouterAnswer answer{.status = exchange.status(), .body = {}, .tag = {}};
  answer.tag = exchange.headers().find("etag").value_or("");
  auto body = co_await http::read_all(exchange, now.answer_bytes_max);
  if (!body.ok()) co_return unavailable(body.error());
  answer.body = std::move(*body);
  co_return answer;
}

}  // namespace sightline::remote_selector
