// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/relay/whole_answer.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/front/relay/passing.h"
#include "router/openai/usage.h"

namespace sightline::relay {
namespace {

// Reads an answer without streaming, piece by piece, and finds its usage meanwhile.
class Pieces {
 public:
  Pieces(http::Exchange& exchange, const Attempt& attempt)
      : exchange_(exchange), attempt_(attempt) {}

  // Returns the next piece, which is valid until the next call. It is empty at the end.
  Task<Result<std::string_view>> next() {
    auto piece = co_await exchange_.read_some();
    if (!piece.ok()) {
      Error error = std::move(piece).error();
      error.retryable = false;
      co_return error;
    }
    bytes_ += piece->size();
    if (bytes_ > kAnswerBytesMax) {
      exchange_.cancel();
      co_return worker_error(ErrorCode::TooLarge, "the engine's answer is too large", false);
    }
    if (!piece->empty()) raise_life(attempt_);
    usage_.read(*piece);
    co_return piece;
  }

  [[nodiscard]] std::optional<openai::Usage> usage() const { return usage_.usage(); }

 private:
  http::Exchange& exchange_;
  const Attempt& attempt_;
  std::size_t bytes_ = 0;
  openai::UsageReader usage_;
};

// The beginning of an answer, and whether it is the whole answer.
struct AnswerStart {
  explicit AnswerStart(ByteBudget* budget) : bytes(budget, Claim::Small) {}
  std::string text;
  // Counts the bytes of the text.
  HeldBytes bytes;
  bool is_whole = false;
};

Task<Result<Done>> hold(Pieces& pieces, AnswerStart& held) {
  bool has_room = true;
  while (has_room && held.text.size() <= kAnswerHeldBytesMax) {
    const auto piece = co_await pieces.next();
    if (!piece.ok()) co_return piece.error();
    held.is_whole = piece->empty();
    if (held.is_whole) break;
    held.text.append(*piece);
    // Without room for more, the answer is forwarded piece by piece.
    has_room = held.bytes.add(piece->size());
  }
  co_return Done{};
}

// Writes the held part, and then the rest as it arrives. The client's speed limits the worker.
Task<Result<Done>> relay_pieces(AnswerStart& held, Pieces& pieces, http::ResponseWriter& client) {
  auto written = co_await client.write(held.text);
  // The memory is free before the client has read the rest.
  std::string().swap(held.text);
  held.bytes.clear();
  while (written.ok()) {
    const auto piece = co_await pieces.next();
    if (!piece.ok()) {
      client.abort();
      co_return piece.error();
    }
    if (piece->empty()) co_return co_await client.finish();
    written = co_await client.write(*piece);
  }
  co_return written;
}

}  // namespace

Task<Result<AttemptAnswer>> relay_whole(http::Exchange& exchange, const Attempt& attempt,
                                        http::ResponseWriter& client) {
  Pieces pieces(exchange, attempt);
  AnswerStart held(attempt.held);
  const auto begun = co_await hold(pieces, held);
  if (!begun.ok()) co_return begun.error();
  note_answer(attempt);
  const int status = exchange.status();
  http::Headers headers = answer_headers(exchange, attempt);
  Result<Done> sent = Done{};
  if (held.is_whole) {
    http::Response response{
        .status = status, .headers = std::move(headers), .body = std::move(held.text)};
    sent = co_await client.send(std::move(response));
  } else {
    sent = co_await client.begin(status, std::move(headers));
    if (sent.ok()) sent = co_await relay_pieces(held, pieces, client);
  }
  if (!sent.ok()) co_return std::move(sent).error();
  co_return AttemptAnswer{.status = status, .usage = pieces.usage()};
}

}  // namespace sightline::relay
