// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/exchange.h"

#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/http/codec.h"
#include "common/http/wire.h"

namespace sightline::http {
namespace {

constexpr std::size_t kSpareBytes = 64;  // for simdjson, which parses the body without a copy then
constexpr int kSwitchingProtocols = 101;
// A server may send "100 Continue" and some "103 Early Hints" (RFC 8297) before its answer. Without
// a limit it could occupy the caller for ever.
constexpr int kInterimResponsesMax = 32;
constexpr std::string_view kUpstream = "the upstream server ";

std::string host_field(const ServerAddress& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  auto field = v6 ? "[" + endpoint.host + "]" : endpoint.host;
  return field.append(":").append(std::to_string(endpoint.port));
}

ErrorCode code_of(Failure failure) {
  switch (failure) {
    case Failure::Corrupt:
      return ErrorCode::Corrupt;
    case Failure::TooLarge:
      return ErrorCode::TooLarge;
    case Failure::Timeout:
      return ErrorCode::Timeout;
    case Failure::Cancelled:
      return ErrorCode::Cancelled;
    default:
      return ErrorCode::Unavailable;
  }
}

}  // namespace

struct Exchange::State {
  explicit State(std::shared_ptr<Connections> from)
      : connections(std::move(from)),
        decoder({.header_bytes_max = connections->options().response_header_bytes_max,
                 .header_fields_max = connections->options().response_header_fields_max}) {}
  ~State() { release(); }

  Error fail(Failure how, std::string_view what) {
    // A cancelled exchange fails in any way that its closed connection produces.
    failure = cancelled ? Failure::Cancelled : how;
    if (cancelled) what = "was disconnected because the request was cancelled";
    if (wire) wire->close();
    // Once the client may have seen bytes, another attempt could repeat them.
    const bool retryable = !response_begun && !cancelled;
    return worker_error(code_of(failure), std::string(kUpstream).append(what), retryable);
  }

  // Returns the connection to the pool, or closes it if it cannot be used again.
  void release() {
    if (!wire) return;
    if (!complete && failure == Failure::None && !cancelled) {
      // A caller that ignores the body need not read it. If the rest is here already, the
      // connection can still be used.
      static_cast<void>(decode_body());
    }
    const auto done = std::exchange(wire, nullptr);
    done->consume(std::exchange(held_bytes, 0));
    if (complete && reusable && !cancelled) {
      connections->keep(endpoint, done);
    } else {
      done->close();
    }
  }

  Task<Result<Done>> converse(const Call& call);
  Task<Result<Done>> read_head(const Call& call);
  Result<std::string_view> decode_body();
  Error ended_early(Io how);

  std::shared_ptr<Connections> connections;
  ResponseDecoder decoder;
  ServerAddress endpoint;
  std::shared_ptr<Wire> wire;
  Dial dial;
  Duration between_bytes{};
  std::size_t held_bytes = 0;  // of the receive buffer, which the caller still reads
  Failure failure = Failure::None;
  bool answers_head = false;
  bool response_begun = false;
  bool kept_closed = false;
  bool complete = false;
  bool reusable = false;
  bool cancelled = false;
};

Error Exchange::State::ended_early(Io how) {
  if (how == Io::TimedOut) return fail(Failure::Timeout, "did not answer in time");
  if (how == Io::Full) return fail(Failure::Corrupt, "sent an overlong line");
  if (!response_begun) return fail(Failure::NoAnswer, "closed the connection without an answer");
  return fail(Failure::BrokenOff, "broke off its answer");
}

Task<Result<Done>> Exchange::State::converse(const Call& call) {
  std::size_t body_bytes = 0;
  for (const auto piece : call.body) body_bytes += piece.size();
  std::string head;
  append_request_head(head, call.head, host_field(call.endpoint), body_bytes);
  // Pieces are sent as they are: a body may be many megabytes.
  std::vector<std::string_view> pieces{head};
  pieces.insert(pieces.end(), call.body.begin(), call.body.end());
  Pace pace({.stall = call.timeouts.write});
  const auto sent = co_await wire->send(pieces, pace);
  if (cancelled) co_return fail(Failure::Cancelled, "");
  if (sent == Io::TimedOut) co_return fail(Failure::Timeout, "did not read the request in time");
  // A server may answer and close before it has read everything, so read an answer in any case.
  co_return co_await read_head(call);
}

Task<Result<Done>> Exchange::State::read_head(const Call& call) {
  wire->set_deadline(call.timeouts.first_byte);
  int interim = 0;
  for (;;) {
    const auto step = decoder.step(wire->received());
    if (!wire->received().empty()) response_begun = true;
    wire->consume(step.consumed);
    if (step.kind == Step::Kind::Refused) {
      const bool large = decoder.refusal().code == ErrorCode::TooLarge;
      co_return large ? fail(Failure::TooLarge, "sent too large a header")
                      : fail(Failure::Corrupt, "sent data that is not HTTP");
    }
    if (step.kind == Step::Kind::Head) {
      const auto status = decoder.status();
      // This client never asks for an upgrade, so the following bytes would be unknown.
      if (status == kSwitchingProtocols) {
        co_return fail(Failure::Corrupt, "switched to another protocol unasked");
      }
      if (status >= 200) break;
      if (++interim > kInterimResponsesMax) {
        co_return fail(Failure::TooLarge, "sent too many interim responses");
      }
      decoder.reset(answers_head);
      continue;
    }
    const auto io = co_await wire->more();
    if (io != Io::Done) co_return ended_early(io);
  }
  wire->clear_deadline();
  reusable = decoder.keep_alive();
  co_return Done{};
}

// Decodes the bytes of the receive buffer. Moves the data of its chunks together, over the framing
// between them, so a burst becomes one piece.
Result<std::string_view> Exchange::State::decode_body() {
  char* const start = wire->received_bytes();
  const auto input = wire->received();
  char* body = nullptr;
  std::size_t body_bytes = 0;
  while (!complete) {
    const auto step = decoder.step(input.substr(held_bytes));
    if (step.kind == Step::Kind::Refused) {
      // Returns the bytes before it first. The decoder refuses again at the next call.
      if (body_bytes > 0) break;
      return fail(Failure::Corrupt, "sent a malformed body");
    }
    held_bytes += step.consumed;
    if (step.kind == Step::Kind::NeedMore) break;
    complete = step.kind == Step::Kind::End;
    if (step.body.empty()) continue;
    if (body == nullptr) {
      body = start + (step.body.data() - input.data());
    } else {
      std::memmove(body + body_bytes, step.body.data(), step.body.size());
    }
    body_bytes += step.body.size();
  }
  return std::string_view(body, body_bytes);
}

Exchange::Exchange(Client& client) : state_(std::make_unique<State>(client.connections())) {}
Exchange::~Exchange() = default;

Task<Result<Done>> Exchange::start(const Call& call) {
  auto& state = *state_;
  SL_CHECK(!state.wire && !state.complete && state.failure == Failure::None);
  state.endpoint = call.endpoint;
  state.between_bytes = call.timeouts.between_bytes;
  state.answers_head = call.head.method == "HEAD";
  state.decoder.reset(state.answers_head);
  if (state.cancelled) co_return state.fail(Failure::Cancelled, "");
  if (!call.fresh) state.wire = state.connections->take_idle(call.endpoint);
  if (state.wire) {
    auto result = co_await state.converse(call);
    state.kept_closed = state.failure == Failure::NoAnswer;
    // The server has probably closed all its idle connections, for example at a restart.
    if (state.kept_closed) state.connections->forget_here(call.endpoint);
    co_return result;
  }
  auto connected =
      co_await state.connections->connect(call.endpoint, call.timeouts.connect, state.dial);
  if (!connected.ok()) {
    const auto how = state.dial.is_local() ? Failure::Local : Failure::Connect;
    state.failure = state.cancelled ? Failure::Cancelled : how;
    co_return std::move(connected).error();
  }
  state.wire = std::move(connected).value();
  co_return co_await state.converse(call);
}

int Exchange::status() const { return state_->decoder.status(); }
const Headers& Exchange::headers() const { return state_->decoder.headers(); }

Task<Result<std::string_view>> Exchange::read_some() {
  auto& state = *state_;
  if (state.complete) {
    state.release();
    co_return std::string_view();
  }
  if (!state.wire || state.cancelled) co_return state.fail(Failure::Cancelled, "");
  for (;;) {
    // The caller has read the previous piece.
    state.wire->consume(std::exchange(state.held_bytes, 0));
    const auto piece = state.decode_body();
    if (!piece.ok() || !piece->empty()) co_return piece;
    if (state.complete) {
      state.release();
      co_return std::string_view();
    }
    state.wire->consume(std::exchange(state.held_bytes, 0));
    state.wire->set_deadline(state.between_bytes);
    const auto io = co_await state.wire->more();
    state.wire->clear_deadline();
    if (io == Io::Done) continue;
    // Without a length, the end of the connection is the end of the body.
    const bool by_close = io == Io::Closed && !state.cancelled &&
                          state.decoder.end_of_input().kind == Step::Kind::End;
    if (!by_close) co_return state.ended_early(io);
    state.complete = true;
    state.reusable = false;
    state.release();
    co_return std::string_view();
  }
}

void Exchange::cancel() {
  auto& state = *state_;
  if (state.cancelled) return;
  state.cancelled = true;
  if (state.wire) state.wire->close();
  // Last, because it may resume start() before it returns.
  state.dial.stop();
}

Failure Exchange::failure() const { return state_->failure; }
bool Exchange::connection_refused() const {
  return state_->failure == Failure::Connect && state_->dial.refused();
}
bool Exchange::kept_connection_closed() const { return state_->kept_closed; }
bool Exchange::response_begun() const { return state_->response_begun; }

Task<Result<std::string>> read_all(Exchange& exchange, std::size_t bytes_max) {
  std::string body;
  for (;;) {
    const auto piece = co_await exchange.read_some();
    if (!piece.ok()) co_return piece.error();
    if (piece->empty()) break;
    if (piece->size() > bytes_max - body.size()) {
      // Otherwise the rest of the answer would have to be read before the connection can be used.
      exchange.cancel();
      co_return worker_error(ErrorCode::TooLarge, "the upstream server's answer is too large",
                             false);
    }
    body.append(*piece);
  }
  body.reserve(body.size() + kSpareBytes);
  co_return body;
}

}  // namespace sightline::http
