// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/audit/audit.h"

#include <cmath>
#include <condition_variable>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metric_table.h"

namespace sightline::audit {

Audit::Audit(Options options, Surroundings around, runtime::Metrics& metrics, const Clock& clock)
    : options_(options),
      around_(std::move(around)),
      metrics_(metrics),
      clock_(clock),
      judge_(around_.journal) {
  thread_.emplace("audit", [this](const std::stop_token& stop) { judge_until_stopped(stop); });
}

Audit::~Audit() {
  thread_->request_stop();
  pending_.close();
}

std::optional<std::uint64_t> Audit::count(const Answered& answered, Instant now) {
  const std::lock_guard lock(mutex_);
  const auto found = followed_.find(answered.engine);
  if (found == followed_.end()) return std::nullopt;
  Followed& engine = found->second;
  // vLLM to 0.20 leaves the count out where nothing was reused; later ones tell that zero too.
  const bool leaves_zero_out = engine.tells && !engine.tells_zero;
  if (!answered.actual && !leaves_zero_out) {
    ++engine.tally.untold;
    metrics_.counter(contract::kPredictionsTotal, {answered.worker, "untold"}).add();
    return std::nullopt;
  }
  engine.tells = true;
  engine.tells_zero = engine.tells_zero || answered.actual == 0U;
  const std::uint64_t actual = answered.actual.value_or(0);
  const bool kept = actual >= answered.predicted;
  Tally& tally = engine.tally;
  ++(!kept ? tally.over : actual > answered.predicted ? tally.under : tally.equal);
  // The count of another prompt is not about our blocks.
  const bool proves = answered.same_prompt && answered.predicted > 0;
  if (kept && proves) judge_.agreed(answered.engine, now);
  return actual;
}

void Audit::compare(const Answered& answered) {
  const Instant now = clock_.now();
  const auto actual = count(answered, now);
  if (!actual) return;
  const std::int64_t excess =
      static_cast<std::int64_t>(answered.predicted) - static_cast<std::int64_t>(*actual);
  const std::string_view result = excess == 0 ? "equal" : excess > 0 ? "over" : "under";
  metrics_.counter(contract::kPredictionsTotal, {answered.worker, result}).add();
  metrics_.histogram(contract::kPredictionErrorTokens, {answered.worker})
      .observe(std::abs(static_cast<double>(excess)));
  if (excess == 0) return;
  if (!answered.same_prompt) {
    count_miss(answered.worker, result, "token_mismatch");
    return;
  }
  if (excess < 0) {
    count_miss(answered.worker, result, cause_of_under(answered));
    return;
  }
  Pending pending{.claim = {.engine = answered.engine,
                            .blocks = {answered.blocks.begin(), answered.blocks.end()},
                            .reused_blocks = *actual * answered.blocks.size() / answered.predicted,
                            .removals = answered.removals,
                            .decided = answered.decided,
                            .answered = now},
                  .worker = std::string(answered.worker),
                  .request_id = std::string(answered.request_id),
                  .predicted = answered.predicted,
                  .actual = *actual};
  if (!pending_.push(std::move(pending))) count_miss(answered.worker, result, "not_judged");
}

std::string_view Audit::cause_of_under(const Answered& answered) const {
  // What another request is storing is announced after this one was decided.
  if (answered.busy) return "concurrent";
  const std::string_view incomplete = around_.why_incomplete(answered.engine);
  return incomplete.empty() ? "unexplained" : incomplete;
}

void Audit::count_miss(std::string_view worker, std::string_view result, std::string_view cause) {
  metrics_.counter(contract::kPredictionMissesTotal, {worker, result, cause}).add();
}

void Audit::judge_until_stopped(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (auto pending = pending_.pop()) {
    // Answers come in order, so whoever is behind has to wait longer anyway.
    const Duration left = pending->claim.answered + options_.announcement_delay - clock_.now();
    if (left > Duration{}) stopped.wait_for(lock, stop, left, [] { return false; });
    if (stop.stop_requested()) return;
    judge(*pending);
  }
}

void Audit::judge(const Pending& pending) {
  const EngineId engine = pending.claim.engine;
  Verdict verdict;
  {
    const std::lock_guard lock(mutex_);
    const auto found = followed_.find(engine);
    if (found == followed_.end()) return;
    verdict = judge_.over(pending.claim, clock_.now());
    Tally& tally = found->second.tally;
    if (verdict.cause == OverCause::NotReused) ++tally.not_reused;
    if (verdict.cause == OverCause::Unexplained) ++tally.unexplained;
    if (verdict.relearn != Relearn::No) ++tally.relearned;
  }
  count_miss(pending.worker, "over", name_of(verdict.cause));
  if (verdict.cause == OverCause::NotReused && verdict.strikes > 0) {
    log(LogLevel::Warn, "the engine does not reuse all it holds: its overlap is an upper bound",
        {{"worker", pending.worker},
         {"engine", engine.value},
         {"predicted_tokens", pending.predicted},
         {"cached_tokens", pending.actual}});
  }
  if (verdict.cause != OverCause::Unexplained) return;
  log(LogLevel::Warn, "the engine reused less than its events say it holds",
      {{"request_id", pending.request_id},
       {"worker", pending.worker},
       {"engine", engine.value},
       {"predicted_tokens", pending.predicted},
       {"cached_tokens", pending.actual},
       {"in_a_row", verdict.strikes}});
  if (verdict.relearn == Relearn::No) return;
  const bool replay = verdict.relearn == Relearn::FromReplay;
  metrics_.counter(contract::kRelearnsTotal, {pending.worker}).add();
  log(LogLevel::Warn, "the index was wrong about an engine: its blocks are learned anew",
      {{"worker", pending.worker},
       {"engine", engine.value},
       {"from", replay ? "replay" : "new events"}});
  around_.relearn(engine, verdict.relearn);
}

void Audit::follow(EngineId engine) {
  const std::lock_guard lock(mutex_);
  followed_.try_emplace(engine);
}

void Audit::forget(EngineId engine) {
  const std::lock_guard lock(mutex_);
  judge_.forget(engine);
  followed_.erase(engine);
}

Tally Audit::tally(EngineId engine) const {
  const std::lock_guard lock(mutex_);
  const auto found = followed_.find(engine);
  return found == followed_.end() ? Tally{} : found->second.tally;
}

}  // namespace sightline::audit
