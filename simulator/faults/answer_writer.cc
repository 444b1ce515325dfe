// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/answer_writer.h"

#include <utility>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

namespace sightline::faults {
namespace {

constexpr std::string_view kEventEnd = "\n\n";
constexpr char kServerError[] = R"({"error":{"message":"injected fault",)"
                                R"("type":"InternalServerError","param":null,"code":500}})";

Error cut_off() { return client_error(ErrorCode::Cancelled, "an injected fault ended the answer"); }

// Returns the bytes of the first `events` events of the text. Absent if the text has no byte after
// them.
std::optional<std::size_t> bytes_before(std::string_view text, std::uint32_t events) {
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < events; ++i) {
    const std::size_t end = text.find(kEventEnd, at);
    if (end == std::string_view::npos) return std::nullopt;
    at = end + kEventEnd.size();
  }
  if (at == text.size()) return std::nullopt;
  return at;
}

std::uint32_t events_in(std::string_view text) {
  std::uint32_t count = 0;
  for (std::size_t at = text.find(kEventEnd); at != std::string_view::npos;
       at = text.find(kEventEnd, at + kEventEnd.size())) {
    ++count;
  }
  return count;
}

}  // namespace

// A pause of an answer. It ends after its time, or when the client leaves.
struct AnswerWriter::Silence {
  Gate over;
  bool left = false;
};

AnswerWriter::AnswerWriter(http::ResponseWriter& writer, FaultPlan& plan,
                           const std::string& request_id)
    : writer_(writer), silence_(std::make_shared<Silence>()) {
  if (plan.empty()) return;
  const FaultTarget occasion{.request = request_id, .sequence = std::nullopt};
  // A refusal replaces the whole answer, so no other fault of the answer is drawn.
  refusal_ = plan.draw(FaultKind::Status500, occasion);
  if (!refusal_) refusal_ = plan.draw(FaultKind::GarbageHttp, occasion);
  if (refusal_) return;
  break_ = plan.draw(FaultKind::DieMidstream, occasion);
  if (!break_) break_ = plan.draw(FaultKind::Stall, occasion);
}

AnswerWriter::~AnswerWriter() = default;

Task<bool> AnswerWriter::answered_by_fault() {
  if (!refusal_) co_return false;
  http::Response response;
  if (refusal_->kind == FaultKind::Status500) {
    response.status = 500;
    response.headers.add("content-type", "application/json");
    response.body = kServerError;
  } else {
    // A field name must not contain spaces or control characters (RFC 9110 section 5.1).
    response.headers.add("no field \x01 name", "\x02");
  }
  static_cast<void>(co_await writer_.send(std::move(response)));
  co_return true;
}

std::optional<std::uint32_t> AnswerWriter::events_until_strike() const {
  if (!break_) return std::nullopt;
  return break_->after_events > events_ ? break_->after_events - events_ : 0;
}

Task<Result<Done>> AnswerWriter::send(http::Response response) {
  // An answer without events breaks before its first byte.
  if (break_) {
    auto struck = co_await strike();
    if (!struck.ok()) co_return struck;
  }
  auto sent = co_await writer_.send(std::move(response));
  co_return sent;
}

Task<Result<Done>> AnswerWriter::begin(int status, http::Headers headers) {
  if (events_until_strike() == 0U) {
    auto struck = co_await strike();
    if (!struck.ok()) co_return struck;
  }
  auto begun = co_await writer_.begin(status, std::move(headers));
  co_return begun;
}

Task<Result<Done>> AnswerWriter::write(std::string_view text) {
  const auto left = events_until_strike();
  const auto cut = left ? bytes_before(text, *left) : std::nullopt;
  if (cut) {
    auto first = co_await writer_.write(text.substr(0, *cut));
    if (first.ok()) first = co_await strike();
    if (!first.ok()) co_return first;
    text.remove_prefix(*cut);
  }
  events_ += events_in(text);
  auto written = co_await writer_.write(text);
  co_return written;
}

Task<Result<Done>> AnswerWriter::finish() {
  auto finished = co_await writer_.finish();
  co_return finished;
}

void AnswerWriter::on_disconnect(std::function<void()> callback) {
  on_left_ = std::move(callback);
  writer_.on_disconnect([left = on_left_, silence = std::weak_ptr(silence_)] {
    // The pause is ended first, because the callback may end its owner.
    const auto pause = silence.lock();
    if (pause) pause->left = true;
    if (left) left();
  });
}

Task<Result<Done>> AnswerWriter::strike() {
  const Fault fault = *std::exchange(break_, std::nullopt);
  if (fault.kind == FaultKind::DieMidstream) {
    writer_.abort();
    co_return cut_off();
  }
  const Executor executor = co_await asio::this_coro::executor;
  const auto open_soon = [executor](const std::shared_ptr<Silence>& silence) {
    asio::post(executor, [silence] { silence->over.open(); });
  };
  const auto pause = silence_;
  auto wake = [left = on_left_, pause, open_soon] {
    pause->left = true;
    if (left) left();
    open_soon(pause);
  };
  // Unlike the callback of on_disconnect(), this one also ends the pause.
  if (!pause->left) writer_.on_disconnect(std::move(wake));
  asio::steady_timer timer(executor);
  if (fault.duration.count() > 0) {
    timer.expires_after(fault.duration);
    timer.async_wait([pause](const auto&) { pause->over.open(); });
  }
  if (!pause->left) co_await pause->over.wait();
  if (pause->left) co_return cut_off();
  co_return Done{};
}

}  // namespace sightline::faults
