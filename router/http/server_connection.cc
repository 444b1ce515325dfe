// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/http/server_connection.h"

#include <algorithm>
#include <utility>

#include "common/base/json.h"

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
constexpr std::size_t kLingerBytesMax = 16ULL * 1024 * 1024;
constexpr std::chrono::seconds kLingerTime{2};

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

Error client_left() {
  return client_error(ErrorCode::Cancelled, "the client closed the connection");
}

}  // namespace

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
    bool readable = co_await read_head();
    if (readable) readable = co_await read_body();
    if (!readable) break;
    co_await answer();
    goes_on = keeps_alive();
  }
  wire_->watch({});
  wire_->close();
}

void ServerConnection::begin_request() {
  decoder_.reset();
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
  if (phase_ == Phase::Idle && wire_->received().empty()) wire_->close();
}

void ServerConnection::force_close() {
  draining_ = broken_ = true;
  wire_->close();
  notice_disconnect();
}

// ---- reading

Task<bool> ServerConnection::read_head() {
  const auto& limits = context_.options.limits;
  if (wire_->received().empty()) wire_->set_deadline(limits.idle_timeout);
  for (;;) {
    const auto step = decoder_.step(wire_->received());
    wire_->consume(step.consumed);
    if (step.kind == Step::Kind::Head) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    const bool begun = decoder_.begun() || !wire_->received().empty();
    if (begun && phase_ == Phase::Idle) {
      phase_ = Phase::Reading;
      wire_->set_deadline(limits.header_timeout);
    }
    const auto io = co_await wire_->more();
    if (io == Io::Done) continue;
    if (phase_ == Phase::Idle) co_return false;
    co_return co_await refuse_slow(io, "the request's header");
  }
  wire_->clear_deadline();
  phase_ = Phase::Reading;
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
    if (body.size() == bytes || !wire_->listening()) break;
    wire_->set_deadline(stall);
    const auto io = co_await wire_->more();
    wire_->clear_deadline();
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  while (body.size() < bytes) {
    if (body.size() >= kTrustedBodyBytes) body.reserve(bytes + kSpareBytes);
    const auto part = body.size() < kTrustedBodyBytes
                          ? std::min(bytes, kTrustedBodyBytes) - body.size()
                          : bytes - body.size();
    const auto io = co_await wire_->receive_into(body, part, stall);
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
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
    }
    wire_->consume(step.consumed);
    if (step.kind == Step::Kind::End) break;
    if (step.kind == Step::Kind::Refused) {
      co_return co_await refuse_undecodable();
    }
    if (step.kind != Step::Kind::NeedMore) continue;
    wire_->set_deadline(limits.body_timeout);
    const auto io = co_await wire_->more();
    wire_->clear_deadline();
    if (io != Io::Done) co_return co_await refuse_slow(io, "the request's body");
  }
  body.reserve(body.size() + kSpareBytes);
  co_return true;
}

// ---- refusing

Task<bool> ServerConnection::refuse(int status, Error error) {
  const auto& make = context_.options.refusal;
  wire_->clear_deadline();
  client_keeps_alive_ = false;
  phase_ = Phase::Handling;
  auto response = make ? make(status, error) : default_refusal(status, error);
  const auto sent = co_await send(std::move(response));
  if (sent.ok()) co_await linger();
  co_return false;
}

Task<bool> ServerConnection::refuse_undecodable() {
  const auto& refusal = decoder_.refusal();
  auto error = client_error(refusal.code, std::string(refusal.message));
  co_return co_await refuse(refusal.status, std::move(error));
}

Task<bool> ServerConnection::refuse_slow(Io how, std::string_view what) {
  const std::string part(what);
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
  const auto bytes_max = context_.options.limits.body_bytes_max;
  auto error = client_error(ErrorCode::TooLarge,
                            "the request's body exceeds " + std::to_string(bytes_max) + " bytes");
  co_return co_await refuse(413, std::move(error));
}

// Closing with unread bytes makes the kernel send a reset, which can overtake the answer.
Task<void> ServerConnection::linger() {
  wire_->end_sending();
  wire_->set_deadline(kLingerTime);
  std::size_t read = 0;
  for (auto io = Io::Done; io == Io::Done && read < kLingerBytesMax;) {
    read += wire_->received().size();
    wire_->consume(wire_->received().size());
    io = co_await wire_->more();
  }
}

// ---- answering

Task<void> ServerConnection::answer() {
  phase_ = Phase::Handling;
  disconnected_ = wire_->ended();
  context_.active_requests.fetch_add(1, std::memory_order_relaxed);
  receive_ahead();
  ResponseWriter writer(*this);
  co_await context_.handler(request_, writer);
  wire_->watch({});
  on_disconnect_ = nullptr;
  if (phase_ == Phase::Handling && !broken_) {
    const auto& make = context_.options.refusal;
    const auto error = internal_error("the request was left without an answer");
    auto response = make ? make(500, error) : default_refusal(500, error);
    static_cast<void>(co_await send(std::move(response)));
  }
  if (phase_ == Phase::Streaming) abort();
  context_.active_requests.fetch_sub(1, std::memory_order_relaxed);
}

// Receives the next request while this one is answered, and so sees the client leave.
void ServerConnection::receive_ahead() {
  wire_->watch([this] {
    if (wire_->ended()) {
      notice_disconnect();
    } else {
      wire_->listen();
    }
  });
  wire_->listen();
}

void ServerConnection::notice_disconnect() {
  disconnected_ = true;
  const auto callback = std::exchange(on_disconnect_, nullptr);
  if (callback) callback();
}

void ServerConnection::on_disconnect(std::function<void()> callback) {
  on_disconnect_ = std::move(callback);
  if (disconnected_ && on_disconnect_) notice_disconnect();
}

Task<Result<Done>> ServerConnection::send_pieces(std::span<const std::string_view> pieces) {
  if (broken_) co_return client_left();
  const auto io = co_await wire_->send(pieces, context_.options.limits.write_timeout);
  if (io == Io::Done) co_return Done{};
  broken_ = disconnected_ = true;
  wire_->close();
  if (io == Io::TimedOut) {
    co_return client_error(ErrorCode::Timeout, "the client does not read its answer");
  }
  co_return client_left();
}

ResponseHead ServerConnection::response_head(int status, const Headers& headers) {
  return {.status = status,
          .headers = &headers,
          .framing = {},
          .http11 = http11_,
          .keep_alive = keeps_alive()};
}

Task<Result<Done>> ServerConnection::send(Response response) {
  SL_CHECK(phase_ == Phase::Handling);
  phase_ = Phase::Answered;
  const bool bodiless = response.status == 204 || response.status == 304;
  auto head = response_head(response.status, response.headers);
  if (!bodiless) head.framing = {Framing::Kind::Length, response.body.size()};
  client_keeps_alive_ = head.keep_alive;
  head_.clear();
  append_response_head(head_, head);
  const bool with_body = !bodiless && !head_only_;
  const std::string_view body = with_body ? std::string_view(response.body) : std::string_view();
  const std::array<std::string_view, 2> pieces{head_, body};
  co_return co_await send_pieces(pieces);
}

Task<Result<Done>> ServerConnection::begin(int status, Headers headers) {
  SL_CHECK(phase_ == Phase::Handling);
  phase_ = Phase::Streaming;
  framing_ = http11_ ? Framing::Kind::Chunked : Framing::Kind::UntilClose;
  if (framing_ == Framing::Kind::UntilClose) client_keeps_alive_ = false;
  if (status == 204 || status == 304) framing_ = Framing::Kind::None;
  auto head = response_head(status, headers);
  head.framing = {framing_, 0};
  client_keeps_alive_ = head.keep_alive;
  head_.clear();
  append_response_head(head_, head);
  const std::array<std::string_view, 1> pieces{head_};
  co_return co_await send_pieces(pieces);
}

Task<Result<Done>> ServerConnection::write(std::string_view text) {
  SL_CHECK(phase_ == Phase::Streaming);
  if (text.empty() || head_only_ || framing_ == Framing::Kind::None) co_return Done{};
  if (framing_ == Framing::Kind::UntilClose) {
    const std::array<std::string_view, 1> pieces{text};
    co_return co_await send_pieces(pieces);
  }
  head_.clear();
  append_chunk_head(head_, text.size());
  const std::array<std::string_view, 3> pieces{head_, text, kChunkEnd};
  co_return co_await send_pieces(pieces);
}

Task<Result<Done>> ServerConnection::finish() {
  SL_CHECK(phase_ == Phase::Streaming);
  phase_ = Phase::Answered;
  if (framing_ != Framing::Kind::Chunked || head_only_) co_return Done{};
  const std::array<std::string_view, 1> pieces{kLastChunk};
  co_return co_await send_pieces(pieces);
}

void ServerConnection::abort() {
  phase_ = Phase::Answered;
  broken_ = true;
  // Without chunks the end of the connection would look like the end of the body.
  if (framing_ == Framing::Kind::UntilClose) {
    wire_->reset();
  } else {
    wire_->close();
  }
}

}  // namespace sightline::http
