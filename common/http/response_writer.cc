// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <array>
#include <new>
#include <utility>

#include "common/base/out_of_memory.h"
#include "common/http/server_connection.h"

namespace sightline::http {
namespace {

Error client_left() {
  return client_error(ErrorCode::Cancelled, "the client closed the connection");
}

// The answer when a handler returned without one.
Response left_response(const ServerOptions& options, bool is_cut_off) {
  if (is_cut_off) {
    return refusal_response(options, 503, stopping_error("the request was answered"));
  }
  return refusal_response(options, 500, internal_error("the request got no answer"));
}

}  // namespace

Task<Result<Done>> ResponseWriter::send(Response response) {
  return connection_->send(std::move(response));
}
Task<Result<Done>> ResponseWriter::begin(int status, Headers headers) {
  return connection_->begin(status, std::move(headers));
}
Task<Result<Done>> ResponseWriter::write(std::string_view text) { return connection_->write(text); }
Task<Result<Done>> ResponseWriter::finish() { return connection_->finish(); }
void ResponseWriter::abort() { connection_->abort(); }
bool ResponseWriter::started() const { return connection_->started(); }
bool ResponseWriter::disconnected() const { return connection_->disconnected(); }
bool ResponseWriter::cut_off() const { return connection_->is_cut_off(); }
void ResponseWriter::on_disconnect(std::function<void()> callback) {
  connection_->on_disconnect(std::move(callback));
}

// This file is the answering part of a connection.

Task<void> ServerConnection::answer() {
  phase_ = Phase::Handling;
  disconnected_ = wire_->ended();
  context_.active_requests.fetch_add(1, std::memory_order_relaxed);
  receive_ahead();
  ResponseWriter writer(*this);
  bool is_out_of_memory = false;
  try {
    co_await context_.handler(request_, writer);
  } catch (const std::bad_alloc&) {
    // co_await is not allowed in a handler of exceptions, so the answer follows below.
    is_out_of_memory = true;
  }
  // The callbacks may refer to the handler's variables.
  wire_->watch({});
  on_disconnect_ = nullptr;
  if (phase_ == Phase::Handling && !broken_ && !disconnected_) {
    auto response = is_out_of_memory ? refusal_response(context_.options, 503, out_of_memory())
                                     : left_response(context_.options, cut_off_);
    static_cast<void>(co_await send(std::move(response)));
  }
  // The client must see that the body is incomplete.
  if (phase_ == Phase::Streaming) abort();
  context_.active_requests.fetch_sub(1, std::memory_order_relaxed);
}

// Receives the next request during this answer, which also shows when the client leaves.
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
  tell_handler();
}

void ServerConnection::tell_handler() {
  // Taken out before the call, because the callback may set another one.
  const auto callback = std::exchange(on_disconnect_, nullptr);
  if (callback) callback();
}

void ServerConnection::on_disconnect(std::function<void()> callback) {
  on_disconnect_ = std::move(callback);
  if (disconnected_ || cut_off_) tell_handler();
}

Task<Result<Done>> ServerConnection::send_pieces(std::span<const std::string_view> pieces) {
  if (broken_) co_return client_left();
  const auto io = co_await wire_->send(pieces, *write_pace_);
  if (io == Io::Done) co_return Done{};
  // A part of the answer may be out, so nothing more can follow.
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
  // RFC 9110: these statuses have no body.
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
  // HTTP/1.0 has no chunks.
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
  // An empty chunk would end the body.
  if (text.empty() || head_only_ || framing_ == Framing::Kind::None) co_return Done{};
  if (framing_ == Framing::Kind::UntilClose) {
    const std::array<std::string_view, 1> pieces{text};
    co_return co_await send_pieces(pieces);
  }
  head_.clear();
  append_chunk_head(head_, text.size());
  // One call, so the socket gets the chunk as a unit.
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
  // Without chunks, the end of the connection would look like the end of the body.
  if (framing_ == Framing::Kind::UntilClose) {
    wire_->reset();
  } else {
    wire_->close();
  }
}

}  // namespace sightline::http
