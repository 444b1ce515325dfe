// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/server_connection.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/authority.h"
#include "common/base/memory_ledger.h"
#include "common/base/out_of_memory.h"

namespace sightline::http {
namespace {

constexpr std::size_t kSpareBytes = 64;
// A body of declared length gets its memory in advance up to this size. A larger one gets more only
// after this much has arrived. Otherwise headers alone could reserve memory.
constexpr std::size_t kTrustedBodyBytes = 1024 * 1024;
constexpr std::size_t kBufferBytes = 4096;  // the first size of a buffer
// For chunked bodies, whose framing passes through the buffer.
constexpr std::size_t kBodyBufferBytes = 65536;

std::string peer_of(const Wire::Socket& socket) {
  asio::error_code code;
  const auto peer = socket.remote_endpoint(code);
  if (code) return "unknown";
  return authority(peer.address().to_string(), peer.port());
}

DecodeLimits decode_limits(const ServerLimits& limits) {
  return {.header_bytes_max = limits.header_bytes_max,
          .header_fields_max = limits.header_fields_max,
          .target_bytes_max = limits.target_bytes_max};
}

}  // namespace

ServerConnection::ServerConnection(Wire::Socket socket, Deadlines& deadlines,
                                   ServerContext& context, IdleConnections& idle)
    : context_(context),
      idle_(idle, *this),
      decoder_(decode_limits(context.options.limits)),
      peer_(peer_of(socket)),
      buffers_(context.options.connection_memory, Claim::Small) {
  const auto& limits = context.options.limits;
  const Wire::Buffer buffer{
      .bytes = kBufferBytes,
      .bytes_max = std::max({limits.header_bytes_max, kBufferBytes, kBodyBufferBytes})};
  wire_ = std::make_shared<Wire>(std::move(socket), deadlines, buffer);
}

Task<void> ServerConnection::run() {
  has_place_ = true;
  bool goes_on = true;
  while (goes_on) goes_on = co_await serve_request();
  release_body();
  wire_->watch({});
  wire_->close();
  leave_place();
}

Task<bool> ServerConnection::serve_request() {
  begin_request();
  std::optional<Response> refusal;
  const bool readable = co_await read_request(refusal);
  if (refusal) {
    const bool goes_on = co_await decline(std::move(*refusal));
    co_return goes_on;
  }
  if (!readable) co_return false;
  // The handler may run for minutes and needs no large buffer.
  wire_->shrink();
  static_cast<void>(hold_buffers());  // it needs less now
  co_await answer();
  // Decided by the answer that was sent: a drain may have begun since.
  co_return client_keeps_alive_ && !broken_;
}

std::optional<Response> ServerConnection::look_at_head() {
  body_bytes_max_ = context_.options.limits.body_bytes_max;
  if (!context_.options.admission) return std::nullopt;
  Admission admission = context_.options.admission(request_);
  body_bytes_max_ = std::min(body_bytes_max_, admission.body_bytes_max);
  return std::move(admission.refusal);
}

bool ServerConnection::give_way() {
  // Bytes in the kernel are a request, which must be answered.
  if (phase_ != Phase::Idle || !wire_->is_quiet()) return false;
  leave_place();
  idle_.leave();
  wire_->close();
  return true;
}

void ServerConnection::leave_place() {
  if (std::exchange(has_place_, false)) context_.give_place();
}

Task<bool> ServerConnection::read_request(std::optional<Response>& refusal) {
  try {
    bool readable = co_await read_head();
    if (readable) refusal = look_at_head();
    if (readable && !refusal) readable = co_await read_body();
    co_return readable;
    // Memory comes back before the answer needs some.
  } catch (const std::bad_alloc&) {
    drop_body();
    refusal.reset();
  }
  auto error = out_of_memory();
  co_return co_await refuse(503, std::move(error));
}

void ServerConnection::begin_request() {
  decoder_.reset();
  drop_body();
  announced_bytes_ = 0;
  request_ = Request{};
  head_bytes_ = 0;
  static_cast<void>(hold_buffers());  // it needs less now
  phase_ = Phase::Idle;
  framing_ = Framing::Kind::None;
  head_only_ = false;
  const auto& limits = context_.options.limits;
  write_pace_.emplace(Pace::Limits{.stall = limits.write_timeout,
                                   .bytes_per_s_min = limits.bytes_per_s_min,
                                   .grace = limits.write_timeout});
}

bool ServerConnection::keeps_alive() const {
  return client_keeps_alive_ && !broken_ && !draining_ && !context_.draining;
}

void ServerConnection::drain() {
  draining_ = true;
  Duration time = kDrainReadTime;
  // The client may have sent its next request before it saw the drain. Closing now would reset it.
  if (phase_ == Phase::Idle) time = kDrainIdleTime;
  if (phase_ == Phase::Lingering) time = kDrainLingerTime;
  drain_end_ = system_clock().now() + time;
  if (waits_for_client()) wire_->set_deadline(time);
}

void ServerConnection::cut_off() {
  draining_ = cut_off_ = true;
  // There is no request to answer.
  if (phase_ == Phase::Idle || phase_ == Phase::Lingering) return wire_->close();
  context_.cut_off = true;
  // Makes the reading coroutine answer 503.
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
  idle_.leave();
  phase_ = Phase::Reading;
  // The request arrives during a drain, so it gets the short time.
  if (draining_) drain_end_ = system_clock().now() + kDrainReadTime;
}

Duration ServerConnection::patience(Duration usual) const {
  if (!draining_) return usual;
  return std::clamp(drain_end_ - system_clock().now(), Duration::zero(), usual);
}

// Reading.

Task<bool> ServerConnection::read_head() {
  const auto& limits = context_.options.limits;
  // With bytes of the next request here, the header's time limit applies below.
  if (wire_->received().empty()) wire_->set_deadline(patience(limits.idle_timeout));
  for (;;) {
    const auto step = decoder_.step(wire_->received());
    wire_->consume(step.consumed);
    head_bytes_ += step.consumed;
    // Empty lines before a request do not end the wait for it.
    if (step.kind != Step::Kind::NeedMore) idle_.leave();
    if (!hold_buffers()) co_return co_await refuse_unbuffered();
    if (step.kind == Step::Kind::Head) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    // From its first byte on the request has header_timeout, so a slow sender cannot idle within a
    // header.
    const bool begun = decoder_.begun() || !wire_->received().empty();
    if (begun && phase_ == Phase::Idle) {
      begin_reading();
      wire_->set_deadline(patience(limits.header_timeout));
    }
    auto io = Io::Closed;
    if (phase_ == Phase::Idle) {
      io = co_await wait_idle();
    } else {
      io = co_await wire_->more();
    }
    if (io == Io::Done) continue;
    // An idle client that leaves needs no answer.
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

Task<Io> ServerConnection::wait_idle() {
  idle_.enter(system_clock().now());
  const auto io = co_await wire_->more();
  if (io != Io::Done) idle_.leave();
  co_return io;
}

Task<bool> ServerConnection::expect_continue() {
  const auto expectation = request_.headers.find("expect");
  if (!expectation) co_return true;
  const bool known = equal_names(*expectation, "100-continue");
  request_.headers.remove("expect");
  // An HTTP/1.0 client does not understand the answer.
  if (!http11_) co_return true;
  if (!known) {
    auto error =
        client_error(ErrorCode::Unsupported, "the only supported Expect value is 100-continue");
    co_return co_await refuse(417, std::move(error));
  }
  // A client that has begun to send the body does not wait.
  if (!wire_->received().empty()) co_return true;
  const std::array pieces{kContinue};
  const auto sent = co_await send_pieces(pieces);
  co_return sent.ok();
}

Task<bool> ServerConnection::read_body() {
  const auto length = decoder_.content_length();
  // Before "100 Continue", so the client need not send a body that cannot be accepted.
  if (length && *length > body_bytes_max_) co_return co_await refuse_large_body();
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

Pace ServerConnection::body_pace() const {
  const auto& limits = context_.options.limits;
  return Pace({.stall = limits.body_timeout,
               .total_max = limits.body_time_max,
               .bytes_per_s_min = limits.bytes_per_s_min,
               .grace = std::min<Duration>(limits.body_timeout, kRateGraceMax)});
}

Task<Io> ServerConnection::more_body(Pace& pace) {
  const auto before = wire_->received().size();
  const auto begin = system_clock().now();
  wire_->set_deadline(patience(pace.patience()));
  const auto io = co_await wire_->more();
  wire_->clear_deadline();
  pace.add(system_clock().now() - begin, wire_->received().size() - before);
  co_return io;
}

Task<bool> ServerConnection::read_known_body(std::size_t bytes) {
  Pace pace = body_pace();
  auto& body = request_.body;
  body.reserve(std::min(bytes, kTrustedBodyBytes) + kSpareBytes);
  for (;;) {
    const auto received = wire_->received().substr(0, bytes - body.size());
    body.append(received);
    wire_->consume(received.size());
    if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
    if (body.size() == bytes || !wire_->listening()) break;
    const auto io = co_await more_body(pace);
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  // The rest goes straight into the body, without the connection's buffer.
  while (body.size() < bytes) {
    const bool is_room = body.capacity() >= bytes + kSpareBytes;
    if (body.size() >= kTrustedBodyBytes && !is_room) co_await make_room(bytes);
    const auto before = body.size();
    const auto part =
        before < kTrustedBodyBytes ? std::min(bytes, kTrustedBodyBytes) - before : bytes - before;
    const auto begin = system_clock().now();
    const auto io = co_await wire_->receive_some(body, part, patience(pace.patience()));
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
    pace.add(system_clock().now() - begin, body.size() - before);
    if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
  }
  co_return true;
}

// A copy of the received bytes takes as long as receiving them, so other work runs before and
// after.
Task<void> ServerConnection::make_room(std::size_t bytes) {
  co_await wire_->give_way();
  request_.body.reserve(bytes + kSpareBytes);
  co_await wire_->give_way();
}

Task<bool> ServerConnection::read_chunked_body() {
  Pace pace = body_pace();
  auto& body = request_.body;
  if (!wire_->listening()) wire_->reserve(kBodyBufferBytes);
  for (;;) {
    if (!hold_buffers()) co_return co_await refuse_unbuffered();
    const auto step = decoder_.step(wire_->received());
    if (step.kind == Step::Kind::Body) {
      if (step.body.size() > body_bytes_max_ - body.size()) {
        co_return co_await refuse_large_body();
      }
      // Without this, each doubling would copy the body. Unused address space has no
      // memory behind it.
      if (body.size() >= kTrustedBodyBytes) body.reserve(body_bytes_max_ + kSpareBytes);
      body.append(step.body);
      if (!hold_body()) co_return co_await refuse_crowded(std::max(announced_bytes_, body.size()));
    }
    wire_->consume(step.consumed);
    if (step.kind == Step::Kind::End) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    if (step.kind != Step::Kind::NeedMore) continue;
    const auto io = co_await more_body(pace);
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  body.reserve(body.size() + kSpareBytes);
  co_return true;
}

bool ServerConnection::hold_body() {
  // An announced size decides too, or a large body would take the reserve for small ones while it
  // is short.
  const std::size_t bytes = request_.body.size();
  const Claim claim = claim_of(std::max(announced_bytes_, bytes));
  return context_.body_bytes.grow(held_body_bytes_, bytes, claim);
}

bool ServerConnection::hold_buffers() {
  // The fields of a header are stored a second time in Headers.
  const std::size_t head = head_bytes_ > kBufferBytes ? 2 * head_bytes_ : 0;
  const std::size_t wanted = wire_->capacity() - kBufferBytes + head;
  if (wanted > buffers_.bytes()) return buffers_.add(wanted - buffers_.bytes());
  buffers_.remove(buffers_.bytes() - wanted);
  return true;
}

void ServerConnection::drop_body() {
  std::string().swap(request_.body);  // an assignment would keep its memory
  release_body();
}

void ServerConnection::release_body() { context_.body_bytes.release(held_body_bytes_); }

}  // namespace sightline::http
