// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <utility>

#include "common/base/json.h"
#include "common/base/memory_ledger.h"
#include "common/http/server_connection.h"

namespace sightline::http {
namespace {

// How many bytes of a refused request are still read, and for how long. Without this, a reset could
// reach the client before the answer.
constexpr std::size_t kLingerBytesMax = 1024ULL * 1024 * 1024;
constexpr std::chrono::seconds kLingerTimeMax{10};
constexpr std::chrono::seconds kLingerStall{2};
// Shorter, because other connections wait to be turned away.
constexpr std::chrono::seconds kTurnedAwayTimeMax{1};

Response default_refusal(int status, const Error& error) {
  const std::string type = status < 500 ? "invalid_request_error" : "server_error";
  return {.status = status,
          .headers = {{"content-type", "application/json"}},
          .body = "{\"error\":{\"message\":" + json::to_quoted(error.message) + ",\"type\":\"" +
                  type + "\",\"param\":null,\"code\":\"" + std::string(name_of(error.code)) +
                  "\"}}"};
}

}  // namespace

Response refusal_response(const ServerOptions& options, int status, const Error& error) {
  return options.refusal ? options.refusal(status, error) : default_refusal(status, error);
}

Error ServerContext::no_place() const {
  if (options.connection_memory == nullptr || places >= options.limits.connections_max) {
    return overload_error("connections-max", "there are too many connections");
  }
  return memory_error(*options.connection_memory, kConnectionBytes, Claim::Small,
                      "one more connection");
}

// This file is the refusing part of a connection.

Task<void> ServerConnection::turn_away(Error error) {
  begin_request();
  client_keeps_alive_ = false;
  phase_ = Phase::Handling;
  auto response = refusal_response(context_.options, 503, error);
  const auto sent = co_await send(std::move(response));
  if (sent.ok()) co_await linger(kTurnedAwayTimeMax);
  wire_->close();
}

Task<bool> ServerConnection::decline(Response response) {
  // A body that has not come would have to be read before the next request. Closing is cheaper.
  const auto length = decoder_.content_length().value_or(0);
  if (decoder_.chunked() || length > wire_->received().size()) {
    co_return co_await refuse_with(std::move(response));
  }
  wire_->consume(length);
  phase_ = Phase::Handling;
  const auto sent = co_await send(std::move(response));
  co_return sent.ok() && client_keeps_alive_;
}

Task<bool> ServerConnection::refuse_with(Response response) {
  wire_->clear_deadline();
  drop_body();
  client_keeps_alive_ = false;
  phase_ = Phase::Handling;
  const auto sent = co_await send(std::move(response));
  if (sent.ok()) co_await linger(kLingerTimeMax);
  co_return false;
}

Task<bool> ServerConnection::refuse(int status, Error error) {
  auto response = refusal_response(context_.options, status, error);
  co_return co_await refuse_with(std::move(response));
}

Task<bool> ServerConnection::refuse_undecodable() {
  const auto& refusal = decoder_.refusal();
  auto error = client_error(refusal.code, refusal.message);
  error.limit = refusal.limit;
  co_return co_await refuse(refusal.status, std::move(error));
}

Task<bool> ServerConnection::refuse_slow(Io how, std::string_view what) {
  const std::string part(what);
  // The server's stop ended the wait, not the client.
  if (how == Io::TimedOut && draining_) {
    auto error = stopping_error(part + " had arrived");
    co_return co_await refuse(503, std::move(error));
  }
  if (how == Io::TimedOut) {
    auto error = client_error(ErrorCode::Timeout, part + " arrived too slowly");
    co_return co_await refuse(408, std::move(error));
  }
  if (how == Io::Full) {
    auto error = client_error(ErrorCode::InvalidArgument, part + " has an overlong line");
    co_return co_await refuse(400, std::move(error));
  }
  co_return false;
}

Task<bool> ServerConnection::refuse_large_body() {
  const std::string what = body_bytes_max_ == 0 ? "a body is not allowed here"
                                                : "the request's body has more than " +
                                                      std::to_string(body_bytes_max_) + " bytes";
  auto error = limit_error(ErrorCode::TooLarge, "body-bytes-max", what + " (body-bytes-max)");
  co_return co_await refuse(413, std::move(error));
}

Task<bool> ServerConnection::refuse_crowded(std::size_t bytes) {
  auto error = memory_error(context_.body_bytes, bytes, claim_of(bytes), "the request's body");
  const int status = error.code == ErrorCode::TooLarge ? 413 : 503;
  co_return co_await refuse(status, std::move(error));
}

Task<bool> ServerConnection::refuse_unbuffered() {
  // Without this it would be asked to give way while it is being refused.
  idle_.leave();
  auto error = memory_error(*buffers_.budget(), 1, Claim::Small, "the connection's buffer");
  co_return co_await refuse(503, std::move(error));
}

// If a socket closes with unread bytes, the kernel sends a reset, which can overtake the answer.
Task<void> ServerConnection::linger(Duration longest) {
  wire_->end_sending();
  phase_ = Phase::Lingering;
  const auto begin = system_clock().now();
  if (draining_) drain_end_ = begin + kDrainLingerTime;
  std::size_t read = 0;
  for (auto io = Io::Done; io == Io::Done && read < kLingerBytesMax;) {
    const Duration left = begin + longest - system_clock().now();
    wire_->set_deadline(patience(std::clamp(left, Duration::zero(), Duration(kLingerStall))));
    read += wire_->received().size();
    wire_->consume(wire_->received().size());
    io = co_await wire_->more();
  }
}

}  // namespace sightline::http
