// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/relay/forward.h"

#include <string_view>
#include <utility>

#include "common/contract/names.h"

#include "router/front/relay/passing.h"
#include "router/front/relay/stream_tap.h"
#include "router/front/relay/whole_answer.h"
#include "router/openai/error_body.h"

namespace sightline::relay {
namespace {

// Ends the exchange when the client leaves. The destructor removes the callback before the exchange
// is destroyed.
class CancelOnDisconnect {
 public:
  CancelOnDisconnect(http::ResponseWriter& client, http::Exchange& exchange) : client_(client) {
    client_.on_disconnect([&exchange] { exchange.cancel(); });
  }
  ~CancelOnDisconnect() { client_.on_disconnect({}); }
  CancelOnDisconnect(const CancelOnDisconnect&) = delete;
  CancelOnDisconnect& operator=(const CancelOnDisconnect&) = delete;

 private:
  http::ResponseWriter& client_;
};

// The limits for reading the body of a 503.
constexpr std::size_t kRefusalBytesMax = 16384;
constexpr std::chrono::seconds kRefusalTime{1};
// Smaller parts of a stream's events are not counted. The buffers of a connection are larger.
constexpr std::size_t kCountedBytesMin = 4096;
// Statuses by which a server says that another server may answer (RFC 9110 section 15.6).
bool is_unavailable(int status) { return status == 502 || status == 503 || status == 504; }

bool is_event_stream(const http::Exchange& exchange) {
  const auto type = exchange.headers().find("content-type");
  constexpr std::string_view kStream = "text/event-stream";
  return type && http::equal_names(type->substr(0, kStream.size()), kStream);
}

// The router requests no compression. A compressed body is forwarded as it is, and its usage is
// unknown.
bool is_coded(const http::Exchange& exchange) {
  const auto coding = exchange.headers().find("content-encoding");
  return coding && !coding->empty() && !http::equal_names(*coding, "identity");
}

// An exchange is cancelled only if the client left or the router stops. The worker is not at fault.
Error seen_from_here(Error error, const http::ResponseWriter& client) {
  if (error.code != ErrorCode::Cancelled) return error;
  if (client.cut_off() && !client.disconnected()) {
    return http::stopping_error("the answer was complete");
  }
  return client_error(ErrorCode::Cancelled, "the client left");
}

retry::AttemptOutcome ending_of(const http::Exchange& exchange) {
  switch (exchange.failure()) {
    case http::Failure::Connect:
      return retry::AttemptOutcome::Unsent;
    case http::Failure::Local:
      return retry::AttemptOutcome::Local;
    case http::Failure::NoAnswer:
      return exchange.kept_connection_closed() ? retry::AttemptOutcome::KeptClosed
                                               : retry::AttemptOutcome::Lost;
    case http::Failure::BrokenOff:
    case http::Failure::Corrupt:
    case http::Failure::TooLarge:
      return retry::AttemptOutcome::Lost;
    case http::Failure::Timeout:
      return retry::AttemptOutcome::Silent;
    case http::Failure::None:
    case http::Failure::Cancelled:
      return retry::AttemptOutcome::Final;
  }
  return retry::AttemptOutcome::Final;
}

// Reads what a worker says with its 503, if it arrives soon.
Task<retry::WorkerRefusal> read_refusal(http::Exchange& exchange, const Attempt& attempt) {
  auto give_up = [&exchange] { exchange.cancel(); };
  Deadline deadline(attempt.pool->deadlines(attempt.pool->index_here()), give_up);
  deadline.set(kRefusalTime);
  const auto told = exchange.headers().find("retry-after");
  retry::RefusalText said{.retry_after = std::string(told.value_or("")),
                          .engine_host = attempt.call.endpoint.host};
  auto body = co_await http::read_all(exchange, kRefusalBytesMax);
  if (body.ok()) said.body = std::move(*body);
  co_return retry::read_refusal(said, attempt.now);
}

// Returns the end of an attempt whose worker says that it cannot answer (RFC 9110 section 15.6).
Task<Forwarded> unavailable(http::Exchange& exchange, const Attempt& attempt) {
  const int status = exchange.status();
  std::string message = "the engine cannot serve now (status " + std::to_string(status) + ")";
  if (status == 504) {
    co_return Forwarded{worker_error(ErrorCode::Timeout, std::move(message), false),
                        retry::AttemptOutcome::Silent,
                        {}};
  }
  if (status == 502) {
    co_return Forwarded{worker_error(ErrorCode::Unavailable, std::move(message), true),
                        retry::AttemptOutcome::Lost,
                        {}};
  }
  retry::WorkerRefusal refusal = co_await read_refusal(exchange, attempt);
  if (!refusal.text.empty()) message += ": " + refusal.text;
  co_return Forwarded{worker_error(ErrorCode::Overloaded, std::move(message), true),
                      retry::AttemptOutcome::Declined, std::move(refusal)};
}

// The client has a part of an answer. The error is sent in the form of the stream. Inside of an
// event nothing can be sent, and so the connection is closed.
Task<Error> break_off(http::ResponseWriter& client, Error error, bool in_event) {
  error.retryable = false;
  if (error.code == ErrorCode::Cancelled || client.disconnected()) co_return error;
  if (in_event) {
    client.abort();
    co_return error;
  }
  const std::string event = openai::error_event(error);
  auto written = co_await client.write(event);
  if (written.ok()) written = co_await client.finish();
  co_return error;
}

// A worker that ends a stream without its last event has broken off, even if its connection ended
// properly.
Result<Done> check_ended(const http::Exchange& exchange, const StreamTap& tap) {
  if (exchange.status() != 200 || tap.done_sent()) return Done{};
  return worker_error(ErrorCode::Unavailable, "the engine ended its stream before its last event",
                      false);
}

Task<Result<Done>> relay_events(http::Exchange& exchange, StreamTap& tap,
                                http::ResponseWriter& client, const Attempt& attempt) {
  std::string out;
  // Counts the bytes that wait for the client.
  HeldBytes held(attempt.held);
  for (;;) {
    auto bytes = co_await exchange.read_some();
    if (!bytes.ok()) co_return std::move(bytes).error();
    raise_life(attempt);
    out.clear();
    if (bytes->empty()) {
      tap.take_end(out);
    } else {
      SL_CO_TRY(tap.take(*bytes, out));
    }
    const std::size_t bytes_held = out.size() + tap.held_bytes();
    if (bytes_held >= kCountedBytesMin) held.charge(bytes_held);
    auto written = co_await client.write(out);
    held.clear();
    if (!written.ok()) co_return std::move(written).error();
    tap.written();
    if (bytes->empty()) co_return check_ended(exchange, tap);
  }
}

Task<Result<AttemptAnswer>> relay_stream(http::Exchange& exchange, const Attempt& attempt,
                                         http::ResponseWriter& client) {
  AttemptAnswer answer{.status = exchange.status()};
  http::Headers headers = answer_headers(exchange, attempt);
  auto begun = co_await client.begin(answer.status, std::move(headers));
  if (!begun.ok()) co_return std::move(begun).error();
  StreamTap tap(attempt, answer);
  auto relayed = co_await relay_events(exchange, tap, client, attempt);
  // SDKs close the connection after the last event, without waiting for the end of the body.
  if (client.disconnected() && tap.done_sent()) co_return answer;
  if (!relayed.ok()) {
    Error cause = seen_from_here(std::move(relayed).error(), client);
    auto error = co_await break_off(client, std::move(cause), tap.in_event());
    co_return error;
  }
  auto finished = co_await client.finish();
  if (!finished.ok() && !tap.done_sent()) co_return std::move(finished).error();
  co_return answer;
}

Task<Result<AttemptAnswer>> relay_bytes(http::Exchange& exchange, const Attempt& attempt,
                                        http::ResponseWriter& client) {
  AttemptAnswer answer{.status = exchange.status()};
  http::Headers headers = answer_headers(exchange, attempt);
  auto written = co_await client.begin(answer.status, std::move(headers));
  while (written.ok()) {
    auto bytes = co_await exchange.read_some();
    if (!bytes.ok()) {
      client.abort();
      Error error = std::move(bytes).error();
      error.retryable = false;
      co_return error;
    }
    // The engine has answered. A failure after it is no loss of the request.
    note_answer(attempt);
    if (bytes->empty()) break;
    raise_life(attempt);
    written = co_await client.write(*bytes);
  }
  if (written.ok()) written = co_await client.finish();
  if (!written.ok()) co_return std::move(written).error();
  co_return answer;
}

Task<Result<AttemptAnswer>> relay(http::Exchange& exchange, const Attempt& attempt,
                                  http::ResponseWriter& client) {
  if (is_coded(exchange)) {
    auto passed = co_await relay_bytes(exchange, attempt, client);
    co_return passed;
  }
  if (is_event_stream(exchange)) {
    auto streamed = co_await relay_stream(exchange, attempt, client);
    co_return streamed;
  }
  auto whole = co_await relay_whole(exchange, attempt, client);
  co_return whole;
}

// The function that forwards an answer to the client.
using Relay = Task<Result<AttemptAnswer>> (*)(http::Exchange&, const Attempt&,
                                              http::ResponseWriter&);

Task<Forwarded> carry_out(http::Client& to_workers, const Attempt& attempt,
                          http::ResponseWriter& client, Relay relay_answer) {
  http::Exchange exchange(to_workers);
  const CancelOnDisconnect guard(client, exchange);
  auto started = co_await exchange.start(attempt.call);
  if (exchange.response_begun()) raise_life(attempt);
  if (!started.ok()) {
    Error error = seen_from_here(std::move(started).error(), client);
    co_return Forwarded{std::move(error), ending_of(exchange), {}};
  }
  if (is_unavailable(exchange.status())) {
    Forwarded declined = co_await unavailable(exchange, attempt);
    co_return declined;
  }
  auto answer = co_await relay_answer(exchange, attempt, client);
  if (!answer.ok()) {
    Error error = seen_from_here(std::move(answer).error(), client);
    co_return Forwarded{std::move(error), retry::AttemptOutcome::Final, {}};
  }
  co_return Forwarded{std::move(answer), retry::AttemptOutcome::Final, {}};
}

}  // namespace

http::Headers answer_headers(const http::Exchange& exchange, const Attempt& attempt) {
  http::Headers headers = http::end_to_end(exchange.headers());
  // A worker redirects to its own address, which clients cannot reach.
  const auto location = headers.find("location");
  if (location && (!location->starts_with('/') || location->starts_with("//"))) {
    headers.remove("location");
  }
  for (const http::Field field : attempt.answer_headers) headers.set(field.name, field.value);
  return headers;
}

Task<Forwarded> forward(http::Client& to_workers, const Attempt& attempt,
                        http::ResponseWriter& client) {
  return carry_out(to_workers, attempt, client, relay);
}

Task<Forwarded> pass_through(http::Client& to_workers, const Attempt& attempt,
                             http::ResponseWriter& client) {
  return carry_out(to_workers, attempt, client, relay_bytes);
}

http::Headers engine_headers(const http::Headers& client, std::string_view request_id) {
  http::Headers headers = http::end_to_end(client);
  // Host and Content-Length follow from the connection and the edited body. The router itself
  // answers for origins. The router chooses the rank, because the client does not know the worker.
  for (const std::string_view name :
       {std::string_view("host"), std::string_view("content-length"), std::string_view("expect"),
        std::string_view("origin"), contract::kEngineRankHeader}) {
    headers.remove(name);
  }
  // The router cannot read a compressed answer. Without this header a server may compress (RFC 9110
  // section 12.5.3).
  headers.set("accept-encoding", "identity");
  headers.set(contract::kRequestIdHeader, request_id);
  return headers;
}

}  // namespace sightline::relay
