// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/server_connection.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/json.h"
#include "common/base/memory_ledger.h"
#include "common/base/out_of_memory.h"

namespace sightline::http {
namespace {

constexpr std::size_t kSpareBytes = 64;
// A body of declared length is given its memory at once up to this size; more only after so much
// has really come.
constexpr std::size_t kTrustedBodyBytes = 1024 * 1024;
constexpr std::size_t kBufferBytes = 4096;
constexpr std::size_t kBodyBufferBytes = 65536;
// Bytes of a refused request that are still read, so that the client gets to see the answer
// instead of a reset, and the time for it.
constexpr std::size_t kLingerBytesMax = 1024ULL * 1024 * 1024;
constexpr std::chrono::seconds kLingerTimeMax{10};
constexpr std::chrono::seconds kLingerStall{2};
constexpr std::chrono::milliseconds kDrainLingerTime{500};

std::string peer_of(const Wire::Socket& socket) {
  asio::error_code code;
  const auto peer = socket.remote_endpoint(code);
  if (code) return "unknown";
  const auto address = peer.address();
  const auto host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return host + ":" + std::to_string(peer.port());
}

DecodeLimits decode_limits(const ServerLimits& limits) {
  return {.header_bytes_max = limits.header_bytes_max,
          .header_fields_max = limits.header_fields_max,
          .target_bytes_max = limits.target_bytes_max};
}

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

ServerConnection::ServerConnection(Wire::Socket socket, Deadlines& deadlines,
                                   ServerContext& context)
    : context_(context), decoder_(decode_limits(context.options.limits)), peer_(peer_of(socket)) {
  const auto& limits = context.options.limits;
  const Wire::Buffer buffer{
      .bytes = kBufferBytes,
      .bytes_max = std::max({limits.header_bytes_max, kBufferBytes, kBodyBufferBytes})};
  wire_ = std::make_shared<Wire>(std::move(socket), deadlines, buffer);
}

Task<void> ServerConnection::run() {
  bool goes_on = true;
  while (goes_on) {
    begin_request();
    const bool readable = co_await read_request();
    if (!readable) break;
    co_await answer();
    // What the answer said counts: a drain may have begun since.
    goes_on = client_keeps_alive_ && !broken_;
  }
  release_body();
  wire_->watch({});
  wire_->close();
}

Task<bool> ServerConnection::read_request() {
  try {
    bool readable = co_await read_head();
    if (readable) readable = co_await read_body();
    co_return readable;
  } catch (const std::bad_alloc&) {
    request_.body = std::string();
  }
  auto error = out_of_memory();
  co_return co_await refuse(503, std::move(error));
}

void ServerConnection::begin_request() {
  decoder_.reset();
  release_body();
  announced_bytes_ = 0;
  request_ = Request{};
  phase_ = Phase::Idle;
  framing_ = Framing::Kind::None;
  head_only_ = false;
}

bool ServerConnection::keeps_alive() const {
  return client_keeps_alive_ && !broken_ && !draining_ && !context_.draining;
}

void ServerConnection::drain() {
  draining_ = true;
  Duration time = kDrainReadTime;
  // A client may have sent its next request before it can know: closing at once would reset it.
  if (phase_ == Phase::Idle) time = kDrainIdleTime;
  if (phase_ == Phase::Lingering) time = kDrainLingerTime;
  drain_end_ = system_clock().now() + time;
  if (waits_for_client()) wire_->set_deadline(time);
}

void ServerConnection::cut_off() {
  draining_ = cut_off_ = true;
  if (phase_ == Phase::Idle || phase_ == Phase::Lingering) return wire_->close();
  context_.cut_off = true;
  if (phase_ == Phase::Reading) {
    drain_end_ = system_clock().now();
    wire_->set_deadline(Duration::zero());
  }
  tell_handler();
}

void ServerConnection::force_close() {
  draining_ = broken_ = true;
  wire_->close();
  notice_disconnect();
}

void ServerConnection::begin_reading() {
  phase_ = Phase::Reading;
  if (draining_) drain_end_ = system_clock().now() + kDrainReadTime;
}

Duration ServerConnection::patience(Duration usual) const {
  if (!draining_) return usual;
  return std::clamp(drain_end_ - system_clock().now(), Duration::zero(), usual);
}

// ---- reading

Task<bool> ServerConnection::read_head() {
  const auto& limits = context_.options.limits;
  if (wire_->received().empty()) wire_->set_deadline(patience(limits.idle_timeout));
  for (;;) {
    const auto step = decoder_.step(wire_->received());
    wire_->consume(step.consumed);
    if (step.kind == Step::Kind::Head) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    const bool begun = decoder_.begun() || !wire_->received().empty();
    if (begun && phase_ == Phase::Idle) {
      begin_reading();
      wire_->set_deadline(patience(limits.header_timeout));
    }
    const auto io = co_await wire_->more();
    if (io == Io::Done) continue;
    if (phase_ == Phase::Idle) co_return false;
    co_return co_await refuse_slow(io, "the request's header");
  }
  wire_->clear_deadline();
  if (phase_ == Phase::Idle) begin_reading();
  request_.method = std::move(decoder_.method());
  request_.target = std::move(decoder_.target());
  request_.headers = std::move(decoder_.headers());
  request_.peer = peer_;
  http11_ = decoder_.http11();
  head_only_ = request_.method == "HEAD";
  client_keeps_alive_ = decoder_.keep_alive();
  co_return true;
}

Task<bool> ServerConnection::expect_continue() {
  const auto expectation = request_.headers.find("expect");
  if (!expectation) co_return true;
  const bool known = equal_names(*expectation, "100-continue");
  request_.headers.remove("expect");
  if (!http11_) co_return true;
  if (!known) {
    auto error = client_error(ErrorCode::Unsupported, "the only Expect understood is 100-continue");
    co_return co_await refuse(417, std::move(error));
  }
  // A client that has begun to send the body is not waiting.
  if (!wire_->received().empty()) co_return true;
  const std::array pieces{kContinue};
  const auto sent = co_await send_pieces(pieces);
  co_return sent.ok();
}

Task<bool> ServerConnection::read_body() {
  const auto& limits = context_.options.limits;
  const auto length = decoder_.content_length();
  if (length && *length > limits.body_bytes_max) co_return co_await refuse_large_body();
  announced_bytes_ = static_cast<std::size_t>(length.value_or(0));
  if (announced_bytes_ > context_.body_bytes.most(claim_of(announced_bytes_))) {
    co_return co_await refuse_crowded(announced_bytes_);
  }
  if (!decoder_.chunked() && length.value_or(0) == 0) {
    request_.headers.remove("expect");
    request_.body.reserve(kSpareBytes);
    co_return true;
  }
  const bool expected = co_await expect_continue();
  if (!expected) co_return false;
  if (length) co_return co_await read_known_body(static_cast<std::size_t>(*length));
  co_return co_await read_chunked_body();
}

Task<bool> ServerConnection::read_known_body(std::size_t bytes) {
  const auto stall = context_.options.limits.body_timeout;
  auto& body = request_.body;
  body.reserve(std::min(bytes, kTrustedBodyBytes) + kSpareBytes);
  for (;;) {
    const auto received = wire_->received().substr(0, bytes - body.size());
    body.append(received);
    wire_->consume(received.size());
    if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
    if (body.size() == bytes || !wire_->listening()) break;
    wire_->set_deadline(patience(stall));
    const auto io = co_await wire_->more();
    wire_->clear_deadline();
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  while (body.size() < bytes) {
    if (body.size() >= kTrustedBodyBytes) body.reserve(bytes + kSpareBytes);
    const auto part = body.size() < kTrustedBodyBytes
                          ? std::min(bytes, kTrustedBodyBytes) - body.size()
                          : bytes - body.size();
    const auto io = co_await wire_->receive_some(body, part, patience(stall));
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
    if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
  }
  co_return true;
}

Task<bool> ServerConnection::read_chunked_body() {
  const auto& limits = context_.options.limits;
  auto& body = request_.body;
  if (!wire_->listening()) wire_->reserve(kBodyBufferBytes);
  for (;;) {
    const auto step = decoder_.step(wire_->received());
    if (step.kind == Step::Kind::Body) {
      if (step.body.size() > limits.body_bytes_max - body.size()) {
        co_return co_await refuse_large_body();
      }
      body.append(step.body);
      if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
    }
    wire_->consume(step.consumed);
    if (step.kind == Step::Kind::End) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    if (step.kind != Step::Kind::NeedMore) continue;
    wire_->set_deadline(patience(limits.body_timeout));
    const auto io = co_await wire_->more();
    wire_->clear_deadline();
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  body.reserve(body.size() + kSpareBytes);
  co_return true;
}

bool ServerConnection::hold_body() {
  const std::size_t bytes = request_.body.size();
  const Claim claim = claim_of(std::max(announced_bytes_, bytes));
  return context_.body_bytes.grow(held_body_bytes_, bytes, claim);
}

void ServerConnection::release_body() { context_.body_bytes.release(held_body_bytes_); }

// ---- refusing

Task<bool> ServerConnection::refuse(int status, Error error) {
  wire_->clear_deadline();
  request_.body = std::string();
  release_body();
  client_keeps_alive_ = false;
  phase_ = Phase::Handling;
  auto response = refusal_response(context_.options, status, error);
  const auto sent = co_await send(std::move(response));
  if (sent.ok()) co_await linger();
  co_return false;
}

Task<bool> ServerConnection::refuse_undecodable() {
  const auto& refusal = decoder_.refusal();
  auto error = client_error(refusal.code, refusal.message);
  error.limit = refusal.limit;
  co_return co_await refuse(refusal.status, std::move(error));
}

Task<bool> ServerConnection::refuse_slow(Io how, std::string_view what) {
  const std::string part(what);
  if (how == Io::TimedOut && draining_) {
    auto error = stopping_error(part + " had not come");
    co_return co_await refuse(503, std::move(error));
  }
  if (how == Io::TimedOut) {
    auto error = client_error(ErrorCode::Timeout, part + " came too slowly");
    co_return co_await refuse(408, std::move(error));
  }
  if (how == Io::Full) {
    auto error = client_error(ErrorCode::InvalidArgument, part + " has an overlong line");
    co_return co_await refuse(400, std::move(error));
  }
  co_return false;
}

Task<bool> ServerConnection::refuse_large_body() {
  const auto bytes_max = std::to_string(context_.options.limits.body_bytes_max);
  auto error = limit_error(ErrorCode::TooLarge, "body-bytes-max",
                           "the request's body exceeds " + bytes_max + " bytes (body-bytes-max)");
  co_return co_await refuse(413, std::move(error));
}

Task<bool> ServerConnection::refuse_crowded(std::size_t bytes) {
  auto error = memory_error(context_.body_bytes, bytes, claim_of(bytes), "the request's body");
  const int status = error.code == ErrorCode::TooLarge ? 413 : 503;
  co_return co_await refuse(status, std::move(error));
}

// Closing with unread bytes makes the kernel send a reset, which can overtake the answer.
Task<void> ServerConnection::linger() {
  wire_->end_sending();
  phase_ = Phase::Lingering;
  const auto begin = system_clock().now();
  if (draining_) drain_end_ = begin + kDrainLingerTime;
  std::size_t read = 0;
  for (auto io = Io::Done; io == Io::Done && read < kLingerBytesMax;) {
    const Duration left = begin + kLingerTimeMax - system_clock().now();
    wire_->set_deadline(patience(std::clamp(left, Duration::zero(), Duration(kLingerStall))));
    read += wire_->received().size();
    wire_->consume(wire_->received().size());
    io = co_await wire_->more();
  }
}

}  // namespace sightline::http
