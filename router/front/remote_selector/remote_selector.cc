// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/remote_selector.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_selection.h"
#include "common/runtime/deadlines.h"

#include "router/front/leases/lease_book.h"
#include "router/front/remote_selector/running.h"
#include "router/front/selection/local_selector.h"
#include "router/front/selection_json/messages.h"

namespace sightline::remote_selector {
namespace {

// The pause between two rounds. A router that restarts may be back after it.
constexpr std::chrono::milliseconds kRoundPause{100};
constexpr int kRoundsMax = 3;
constexpr std::chrono::milliseconds kNewsPause{10};
// The interval of a log line that every request could cause.
constexpr std::chrono::seconds kMismatchLogInterval{10};

}  // namespace

RemoteSelector::RemoteSelector(Options options, const Deps& deps)
    : options_(std::move(options)),
      deps_(deps),
      table_(options_.instance, options_.identity),
      holdings_(options_.instance),
      caller_({deps.pool, deps.names, deps.tokens, deps.clock}, deps.connections),
      found_(options_.routers.size()) {}

RemoteSelector::~RemoteSelector() { stop(); }

Task<Result<selection::Selection>> RemoteSelector::select(const selection::Inquiry& inquiry) {
  const Running running(*this);
  const Instant end = deps_.clock.now() + options_.ask_time;
  const std::uint64_t number = holdings_.begin();
  selection_json::SelectionAsk ask{.inquiry = inquiry,
                                   .tokens = std::nullopt,
                                   .identity = options_.identity,
                                   .reservation = leases::Name{options_.instance, number, 0},
                                   .lease = std::nullopt};
  Result<selection::Selection> selected = Error{};
  const auto book = [&](std::string body, const Holdings::RouterAttempt& place) -> Result<Done> {
    selected = selection_json::read_selection(std::move(body), ask.reservation);
    if (!selected.ok()) return with_context(selected.error(), "sent an invalid selection");
    // The keys are the prompt's whole blocks. No worker can reuse more, even if a router counts
    // more.
    selected->prompt_blocks = inquiry.keys->size();
    selected->block_size = inquiry.is_read ? inquiry.job.block_size : 0;
    selected->overlap_blocks = std::min(selected->overlap_blocks, selected->prompt_blocks);
    fleet::Booking booking;
    // The frontend keeps the load, because it may have to reserve it at another router.
    if (inquiry.is_read) booking = selection::booking_of(inquiry, selected->overlap_blocks);
    holdings_.book(number, place,
                   {.worker = selected->worker, .rank = selected->rank, .booking = booking});
    selected->reservation = number;
    return Done{};
  };
  const auto body = [&ask](std::uint32_t attempt) {
    ask.reservation->attempt = attempt;
    return selection_json::write_ask(ask);
  };
  const RouterQuery asked{.target = "/select_and_reserve", .body = body, .take = book};
  const auto done = co_await this->ask(asked);
  if (done.ok()) co_return selected;
  // If a router reserved it meanwhile, it is not on the next list.
  holdings_.abandon(number);
  // The request is prepared again with the new block size. A wait here saves a second failure.
  if (done.error().code == ErrorCode::OutOfDate) co_await await_news(inquiry.job.block_size, end);
  co_return done.error();
}

Task<void> RemoteSelector::await_news(std::uint32_t block_size, Instant end) {
  while (served()->block_size == block_size && deps_.clock.now() < end && deps_.pool.running()) {
    co_await pause(deps_.pool, kNewsPause);
  }
}

Task<Result<selection::Explanation>> RemoteSelector::explain(const selection::Inquiry& inquiry) {
  const Running running(*this);
  const selection_json::SelectionAsk ask{.inquiry = inquiry,
                                         .tokens = std::nullopt,
                                         .identity = options_.identity,
                                         .reservation = std::nullopt,
                                         .lease = std::nullopt};
  Result<selection::Explanation> explained = Error{};
  const auto take = [&](std::string body, const Holdings::RouterAttempt&) -> Result<Done> {
    explained = selection_json::read_explanation(std::move(body));
    if (explained.ok()) return Done{};
    return with_context(explained.error(), "sent an invalid explanation");
  };
  const auto body = [&ask](std::uint32_t) { return selection_json::write_ask(ask); };
  const RouterQuery asked{.target = "/explain",
                          .body = body,
                          .take = take,
                          .answer_bytes_max = Caller::kLongAnswerBytesMax};
  const auto done = co_await this->ask(asked);
  if (!done.ok()) co_return done.error();
  co_return explained;
}

Task<std::optional<Result<Done>>> RemoteSelector::ask_one(const RouterQuery& asked,
                                                          const Attempt& turn, Troubles& troubles) {
  const Router& router = turn.router;
  if (turn.attempt > 0) deps_.metrics.counter(contract::kSelectionFailoversTotal).add();
  Caller::RouterRequest question{.method = "POST",
                                 .target = asked.target,
                                 .body = asked.body(turn.attempt),
                                 .answer_bytes_max = asked.answer_bytes_max};
  const Instant begin = deps_.clock.now();
  const auto until = table_.answered_until(router.id, begin);
  auto answer = co_await caller_.call(router.address, question, turn.time_max);
  const bool is_silent = !answer.ok() && answer.error().code == ErrorCode::Timeout;
  // A router with many requests may be slow. It gets more time at the end.
  const bool may_be_slow = is_silent && until && begin - *until < options_.patience;
  if (may_be_slow && (!troubles.slow || troubles.slow_until < *until)) {
    troubles.slow = router;
    troubles.slow_until = *until;
  }
  const From from{router, {.router = router.id, .attempt = turn.attempt}};
  co_return take(asked, from, std::move(answer), troubles);
}

Task<Result<Done>> RemoteSelector::ask(const RouterQuery& asked) {
  const Instant end = deps_.clock.now() + options_.ask_time;
  std::uint32_t attempt = 0;
  Troubles troubles;
  for (int round = 0; round < kRoundsMax; ++round) {
    for (const Router& router : table_.order()) {
      const Duration left = end - deps_.clock.now();
      if (left <= Duration::zero()) break;
      const Attempt turn{router, attempt++, std::min(left, options_.call_time)};
      const auto done = co_await ask_one(asked, turn, troubles);
      if (done) co_return *done;
    }
    // Another router may have a worker. The refusal counts after a full round.
    if (troubles.refused) co_return std::move(*troubles.refused);
    // The other routers would say the same for these keys.
    if (troubles.is_out_of_date) break;
    if (end - deps_.clock.now() <= kRoundPause || !deps_.pool.running()) break;
    co_await pause(deps_.pool, kRoundPause);
  }
  // No router gave another reason. A slow answer is better than an error.
  if (troubles.slow && troubles.other.empty()) {
    const Attempt turn{*troubles.slow, attempt++, options_.patience};
    const auto done = co_await ask_one(asked, turn, troubles);
    if (done) co_return *done;
  }
  if (!troubles.other.empty()) {
    const auto code = troubles.is_out_of_date ? ErrorCode::OutOfDate : ErrorCode::Unavailable;
    co_return Error{code, Blame::Internal, true, std::move(troubles.other), "", ""};
  }
  const auto checked = table_.check(RouterTable::Names::No);
  if (!checked.ok()) co_return checked.error();
  // A router has recovered meanwhile.
  co_return Error{ErrorCode::Unavailable,
                  Blame::Internal,
                  true,
                  "no router answered: " + troubles.failed,
                  "",
                  ""};
}

std::optional<Result<Done>> RemoteSelector::take(const RouterQuery& asked, const From& from,
                                                 Result<Caller::RouterAnswer> answer,
                                                 Troubles& troubles) {
  if (!answer.ok()) {
    failed(from.router, troubles.failed = answer.error().message, answer.error().code);
    return std::nullopt;
  }
  if (answer->status != 200) {
    troubles.failed = "status " + std::to_string(answer->status);
    auto refusal = refusal_of(from.router, *answer, troubles);
    if (!refusal) return std::nullopt;
    return Result<Done>(std::move(*refusal));
  }
  const auto taken = asked.take(std::move(answer->body), from.place);
  if (taken.ok()) return Result<Done>(Done{});
  failed(from.router, troubles.failed = taken.error().message);
  return std::nullopt;
}

std::optional<Error> RemoteSelector::refusal_of(const Router& router,
                                                const Caller::RouterAnswer& answer,
                                                Troubles& troubles) {
  if (answer.status == 409) {
    const std::string message = selection_json::error_message(answer.body);
    mismatched(router, message);
    troubles.is_out_of_date = true;
    troubles.other =
        "the frontend's data about the workers is out of date: " + message + ". Try again shortly";
    return std::nullopt;
  }
  if (answer.status == 401) {
    failed(router, "rejected the token of this frontend (selection.token_file)");
    return std::nullopt;
  }
  auto error = selection_json::read_error(answer.body);
  if (error && error->code == ErrorCode::Overloaded) {
    troubles.other = error->message;
    return std::nullopt;
  }
  if (error && error->code == ErrorCode::Unavailable) {
    if (!troubles.refused) troubles.refused = std::move(*error);
    return std::nullopt;
  }
  if (error) return error;
  failed(router, "answered with status " + std::to_string(answer.status));
  return std::nullopt;
}

// A router has keys of another identity or block size. The message names both.
void RemoteSelector::mismatched(const Router& router, const std::string& message) {
  deps_.metrics.counter(contract::kSelectionMismatchesTotal, {"told"}).add();
  must_poll_ = true;
  wake();
  // Several requests may fail at the same time. Only one of them logs.
  const Instant now = deps_.clock.now();
  Instant told = told_mismatch_at_;
  if (told != Instant{} && now - told < kMismatchLogInterval) return;
  if (!told_mismatch_at_.compare_exchange_strong(told, now)) return;
  log(LogLevel::Warn, "a router uses other block keys than this frontend",
      {{"router", router.name}, {"reason", message}});
}

void RemoteSelector::failed(const Router& router, const std::string& reason, ErrorCode code) {
  deps_.metrics.counter(contract::kRouterFailuresTotal).add();
  std::optional<Instant> silent_at;
  if (code == ErrorCode::Timeout) silent_at = deps_.clock.now();
  if (!table_.failed(router.id, reason, silent_at)) return;
  log(LogLevel::Warn, "a router failed: its reservations move to another router",
      {{"router", router.name}, {"reason", reason}});
  must_move_ = true;
  wake();
}

void RemoteSelector::first_token(selection::ReservationId reservation) {
  if (holdings_.first_token(reservation, deps_.clock.now()) != 0) wake();
}

void RemoteSelector::end(selection::ReservationId reservation, const selection::Ending& ending) {
  if (holdings_.end(reservation, ending, deps_.clock.now()) != 0) wake();
}

std::shared_ptr<fleet::LifeSign> RemoteSelector::life(selection::ReservationId reservation) {
  return holdings_.life(reservation);
}

Result<Done> RemoteSelector::check() const {
  SL_TRY(table_.check(RouterTable::Names::Yes));
  if (is_told_) return Done{};
  return Error{ErrorCode::Unavailable,
               Blame::Internal,
               true,
               "no router has reported yet what its workers serve",
               "",
               ""};
}

void RemoteSelector::refresh_metrics() {
  const auto counts = table_.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    deps_.metrics.gauge(contract::kRoutersKnown, {name_of(static_cast<RouterState>(i))})
        .set(static_cast<double>(counts[i]));
  }
  deps_.metrics.gauge(contract::kReservationsHeld).set(static_cast<double>(holdings_.open()));
  const std::uint64_t dropped = holdings_.dropped();
  deps_.metrics.counter(contract::kSelectionNotesDroppedTotal)
      .add(static_cast<double>(dropped - std::exchange(dropped_told_, dropped)));
}

}  // namespace sightline::remote_selector
