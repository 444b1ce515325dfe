// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/caller.h"

#include <array>
#include <chrono>
#include <utility>

#include "common/runtime/deadlines.h"

namespace sightline::remote_selector {
namespace {

using http::Failure;

constexpr std::size_t kAnswerBytesMax = 32 << 20;  // an explanation of 65,536 ranks

// A router keeps a connection that nothing comes on for 75 s.
http::ClientOptions client_options() { return {.idle_age_max = std::chrono::seconds(60)}; }

std::string words_of(const http::Exchange& exchange, const Error& error) {
  if (error.blame == Blame::Internal) return error.message;
  if (exchange.connection_refused()) return "connection refused";
  switch (exchange.failure()) {
    case Failure::Cancelled:
    case Failure::Timeout:
      return "no answer in time";
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

Caller::Caller(IoPool& pool, hosts::Lookup& names, runtime::TokenFile* tokens)
    : pool_(pool), client_(pool, client_options(), names), tokens_(tokens) {}

Task<Result<Caller::Answer>> Caller::call(const http::ServerAddress& router,
                                          const Question& question, Duration time_max) {
  http::Call call;
  call.endpoint = router;
  call.head.method = question.method;
  call.head.target = question.target;
  if (!question.body.empty()) call.head.headers.set("content-type", "application/json");
  if (!question.known_tag.empty()) call.head.headers.set("if-none-match", question.known_tag);
  if (tokens_ != nullptr) call.head.headers.set("authorization", "Bearer " + tokens_->first());
  const std::array<std::string_view, 1> body = {question.body};
  call.body = body;
  call.timeouts = {
      .connect = time_max, .write = time_max, .first_byte = time_max, .between_bytes = time_max};
  bool was_closed = false;
  auto answer = co_await try_once(call, time_max, was_closed);
  if (answer.ok() || !was_closed) co_return answer;
  call.fresh = true;
  auto again = co_await try_once(call, time_max, was_closed);
  co_return again;
}

Task<Result<Caller::Answer>> Caller::try_once(const http::Call& call, Duration time_max,
                                              bool& was_closed) {
  http::Exchange exchange(client_);
  Deadline deadline(pool_.deadlines(pool_.index_here()), [&exchange] { exchange.cancel(); });
  deadline.set(time_max);
  const auto unavailable = [&exchange](const Error& error) {
    return Error{ErrorCode::Unavailable, Blame::Internal, true, words_of(exchange, error), "", ""};
  };
  const auto started = co_await exchange.start(call);
  was_closed = exchange.kept_connection_closed();
  if (!started.ok()) co_return unavailable(started.error());
  Answer answer{.status = exchange.status(), .body = {}, .tag = {}};
  answer.tag = exchange.headers().find("etag").value_or("");
  auto body = co_await http::read_all(exchange, kAnswerBytesMax);
  if (!body.ok()) co_return unavailable(body.error());
  answer.body = std::move(*body);
  co_return answer;
}

}  // namespace sightline::remote_selector
