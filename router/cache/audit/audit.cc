// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/audit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_reuse.h"

namespace sightline::audit {

namespace {

// So many looks in a row must find too many claimed blocks of a rank.
constexpr std::uint32_t kOverfullLooks = 2;

// Returns whether all announcements are applied. False if the events are not followed.
bool is_sound(const std::optional<operations::CacheFacts>& facts) {
  return facts && facts->health == operations::FeedHealth::Verified;
}

// Returns whether the index may claim more than the cache holds, by the cache's nature.
bool is_upper_bound(const std::optional<operations::CacheFacts>& facts) {
  return facts && facts->upper_bound;
}

}  // namespace

Audit::Audit(Options options, Deps router, runtime::Metrics& metrics, const Clock& clock)
    : options_(options),
      router_(std::move(router)),
      metrics_(metrics),
      clock_(clock),
      judge_(router_.journal),
      waiting_(options_.claims, clock_) {
  thread_.emplace("audit", [this](const std::stop_token& stop) { judge_until_stopped(stop); });
}

Audit::~Audit() {
  thread_->request_stop();
  waiting_.close();
}

std::optional<std::uint64_t> Audit::count(const Answered& answered, Instant now) {
  const MutexLock lock(mutex_);
  const auto found = followed_.find(answered.cache);
  if (found == followed_.end()) return std::nullopt;
  FollowedCache& cache = found->second;
  // A rank that never reports a count may run without the flag for it. Its missing count is no
  // zero.
  if (!answered.actual && !(cache.tells && answered.leaves_zero_out)) {
    ++cache.tally.untold;
    metrics_.counter(contract::kPredictionsTotal, {answered.worker, "untold"}).add();
    return std::nullopt;
  }
  cache.tells = true;
  const std::uint64_t actual = answered.actual.value_or(0);
  const bool kept = actual >= answered.predicted;
  Tally& tally = cache.tally;
  ++(!kept ? tally.over : actual > answered.predicted ? tally.under : tally.equal);
  // A count for another prompt says nothing about these blocks.
  const bool proves = answered.same_prompt && answered.predicted > 0;
  if (kept && proves) judge_.agreed(answered.cache, now);
  return actual;
}

void Audit::count_tokens(const Answered& answered, std::uint64_t actual) {
  const auto add = [this](const contract::MetricSpec& metric,
                          std::initializer_list<std::string_view> labels, std::uint64_t tokens) {
    metrics_.counter(metric, labels).add(static_cast<double>(tokens));
  };
  const std::string_view worker = answered.worker;
  add(contract::kJudgedPromptTokensTotal, {worker}, answered.prompt_tokens);
  add(contract::kBestTokensTotal, {worker}, answered.best);
  add(contract::kPredictedTokensTotal, {worker, "text"},
      answered.predicted - answered.predicted_image);
  add(contract::kPredictedTokensTotal, {worker, "image"}, answered.predicted_image);
  add(contract::kReusedTokensTotal, {worker}, actual);
}

void Audit::compare(const Answered& answered) {
  const Instant now = clock_.now();
  const auto actual = count(answered, now);
  if (!actual) return;
  count_tokens(answered, *actual);
  const std::int64_t excess =
      static_cast<std::int64_t>(answered.predicted) - static_cast<std::int64_t>(*actual);
  const std::string_view result = excess == 0 ? "equal" : excess > 0 ? "over" : "under";
  metrics_.counter(contract::kPredictionsTotal, {answered.worker, result}).add();
  metrics_.histogram(contract::kPredictionErrorTokens, {answered.worker})
      .observe(std::abs(static_cast<double>(excess)));
  if (excess == 0) return;
  // Counts of another prompt neither prove nor disprove the index.
  if (!answered.same_prompt) {
    count_miss(answered.worker, result, "token_mismatch");
    return;
  }
  if (excess < 0) {
    count_miss(answered.worker, result, cause_of_under(answered));
    return;
  }
  wait_to_be_judged(answered, *actual, now);
}

void Audit::wait_to_be_judged(const Answered& answered, std::uint64_t actual, Instant now) {
  // Converts the reported tokens to blocks of the prediction. predicted is above 0 here.
  const std::uint64_t reused = actual * answered.blocks.size() / answered.predicted;
  const auto missing = answered.blocks.subspan(reused);
  WaitingClaim waiting;
  waiting.claim.cache = answered.cache;
  waiting.claim.reused_blocks = reused;
  waiting.claim.missing.assign(missing.begin(), missing.end());
  waiting.claim.removals = answered.removals;
  waiting.claim.decided = answered.decided;
  waiting.claim.answered = now;
  waiting.worker = answered.worker;
  waiting.request_id = answered.request_id;
  waiting.predicted = answered.predicted;
  waiting.actual = actual;
  if (is_upper_bound(router_.facts(answered.cache))) {
    count_unjudged(waiting, OverCause::UpperBound);
    return;
  }
  {
    const MutexLock lock(mutex_);
    waiting.claim.row = judge_.row(answered.cache);
  }
  // Removals that explain the claim may still be on their way.
  if (waiting_.add(waiting, now + options_.announcement_delay)) return;
  count_unjudged(waiting, OverCause::NotJudged);
}

std::string_view Audit::cause_of_under(const Answered& answered) const {
  // Other running requests store blocks, which are announced after this decision.
  if (answered.busy) return "concurrent";
  const auto facts = router_.facts(answered.cache);
  if (!facts) return "forgotten";
  if (router_.index.refused(answered.cache) > 0 || facts->missing.no_room) return "index_full";
  if (facts->missing.forgotten) return "forgotten";
  return facts->missing.unknown_content ? "unknown_content" : "unexplained";
}

void Audit::count_miss(std::string_view worker, std::string_view result, std::string_view cause) {
  metrics_.counter(contract::kPredictionMissesTotal, {worker, result, cause}).add();
}

void Audit::judge_until_stopped(const std::stop_token& stop) {
  Instant next_look = clock_.now() + options_.overfull_interval;
  while (!stop.stop_requested()) {
    // If a step gets no memory, only this step ends.
    run_step([&] {
      for (const CacheId cache : waiting_.wait(next_look)) visit(cache);
      if (!stop.stop_requested() && clock_.now() >= next_look) look_at_rooms(next_look);
    });
  }
}

void Audit::look_at_rooms(Instant& next_look) {
  const auto rooms = router_.rooms();
  look_for_overfull(rooms);
  if (router_.watch_rooms) router_.watch_rooms(rooms);
  next_look = clock_.now() + options_.overfull_interval;
}

// Judges the due claims of a rank in their order.
void Audit::visit(CacheId cache) {
  const auto facts = router_.facts(cache);
  while (auto waiting = waiting_.take(cache)) {
    const Instant now = clock_.now();
    const Instant answered = waiting->claim.answered;
    if (is_upper_bound(facts)) {
      count_unjudged(*waiting, OverCause::UpperBound);
    } else if (is_sound(facts) && facts->caught_up >= answered + options_.announcement_delay) {
      judge(*waiting);
    } else if (!is_sound(facts) || now >= answered + options_.judged_within) {
      count_unjudged(*waiting, OverCause::NotJudged);
    } else {
      // The announcements of that time are not applied yet. Later claims wait behind this one.
      waiting_.put_back(std::move(*waiting), now + options_.look_again_after);
      router_.look(cache);
      return;
    }
  }
}

void Audit::count_unjudged(const WaitingClaim& waiting, OverCause cause) {
  {
    const MutexLock lock(mutex_);
    const auto found = followed_.find(waiting.claim.cache);
    if (found == followed_.end()) return;
    Tally& tally = found->second.tally;
    ++(cause == OverCause::UpperBound ? tally.upper_bound : tally.not_judged);
  }
  count_miss(waiting.worker, "over", name_of(cause));
}

void Audit::judge(const WaitingClaim& waiting) {
  const CacheId cache = waiting.claim.cache;
  Judgement verdict;
  {
    const MutexLock lock(mutex_);
    const auto found = followed_.find(cache);
    if (found == followed_.end()) return;
    verdict = judge_.over(waiting.claim, clock_.now());
    Tally& tally = found->second.tally;
    if (verdict.cause == OverCause::NotReused) ++tally.not_reused;
    if (verdict.cause == OverCause::Unexplained) ++tally.unexplained;
  }
  count_miss(waiting.worker, "over", name_of(verdict.cause));
  if (verdict.cause == OverCause::NotReused && verdict.strikes > 0) {
    log(LogLevel::Warn,
        "the engine does not reuse all blocks that it holds: its overlap is an upper bound",
        {{"worker", waiting.worker},
         {"engine", cache.value},
         {"predicted_tokens", waiting.predicted},
         {"cached_tokens", waiting.actual}});
  }
  if (verdict.cause != OverCause::Unexplained) return;
  log(LogLevel::Warn, "the engine reused less of its cache than its KV events report",
      {{"request_id", waiting.request_id},
       {"worker", waiting.worker},
       {"engine", cache.value},
       {"predicted_tokens", waiting.predicted},
       {"cached_tokens", waiting.actual},
       {"in_a_row", verdict.strikes}});
  learn_anew(cache, waiting.worker, verdict.relearn, "unexplained");
}

void Audit::learn_anew(CacheId cache, const std::string& worker, Relearn how,
                       std::string_view because) {
  if (how == Relearn::No) return;
  {
    const MutexLock lock(mutex_);
    const auto found = followed_.find(cache);
    if (found == followed_.end()) return;
    Tally& tally = found->second.tally;
    ++(is_due(how) ? tally.relearned : tally.postponed);
    if (is_due(how)) tally.relearned_because = because;
  }
  if (!is_due(how)) {
    metrics_.counter(contract::kRelearnsPostponedTotal, {worker}).add();
    return;
  }
  metrics_.counter(contract::kRelearnsTotal, {worker}).add();
  log(LogLevel::Warn,
      "the index was wrong about an engine: dropping its blocks and loading them again",
      {{"worker", worker},
       {"engine", cache.value},
       {"because", because},
       {"from", how == Relearn::FromReplay ? "replay" : "new events"}});
  // Runs without the lock: it is code of the router, which may take locks of its own.
  router_.relearn(cache, how);
}

// Needs two looks: at a single one, the rank may have restarted with more blocks than it reported
// before.
void Audit::look_for_overfull(const std::vector<CacheRoom>& rooms) {
  std::unordered_map<CacheId, std::uint32_t> looks;
  for (const CacheRoom& found : rooms) {
    const std::uint64_t claimed = router_.index.blocks(found.cache);
    if (found.blocks == 0 || claimed <= found.blocks) continue;
    const auto facts = router_.facts(found.cache);
    if (!is_sound(facts) || is_upper_bound(facts)) continue;
    const std::uint32_t in_a_row = looks[found.cache] = overfull_looks_[found.cache] + 1;
    if (in_a_row < kOverfullLooks) continue;
    const bool is_first = in_a_row == kOverfullLooks;
    Relearn how = Relearn::No;
    {
      const MutexLock lock(mutex_);
      const auto followed = followed_.find(found.cache);
      if (followed == followed_.end()) continue;
      how = judge_.overfull(found.cache, clock_.now());
      if (is_first) ++followed->second.tally.overfull;
    }
    if (is_first) {
      metrics_.counter(contract::kOverfullTotal, {found.worker}).add();
      log(LogLevel::Warn,
          "the index has more blocks of an engine than the engine itself: check copies= of this "
          "worker",
          {{"worker", found.worker},
           {"engine", found.cache.value},
           {"claimed_blocks", claimed},
           {"engine_blocks", found.blocks}});
    }
    // Counts a postponed resync once, not at every look while the rank stays overfull.
    if (is_first || is_due(how)) learn_anew(found.cache, found.worker, how, "overfull");
  }
  overfull_looks_ = std::move(looks);
}

void Audit::follow(CacheId cache) {
  const MutexLock lock(mutex_);
  followed_.try_emplace(cache);
}

void Audit::forget(CacheId cache) {
  waiting_.forget(cache);
  const MutexLock lock(mutex_);
  judge_.forget(cache);
  followed_.erase(cache);
}

Tally Audit::tally(CacheId cache) const {
  const MutexLock lock(mutex_);
  const auto found = followed_.find(cache);
  return found == followed_.end() ? Tally{} : found->second.tally;
}

}  // namespace sightline::audit
