// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection/local_selector.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_reuse.h"

#include "router/engine/families/families.h"

namespace sightline::selection {
namespace {

// Returns the error for a request without a destination.
Error no_worker(const fleet::FleetSnapshot& fleet, const Inquiry& inquiry) {
  if (const std::uint32_t longest = too_short_for(fleet, inquiry)) {
    return limit_error(ErrorCode::InvalidArgument, "max-model-len",
                       "This model's maximum context length is " + std::to_string(longest) +
                           " tokens. However, your prompt contains " +
                           std::to_string(inquiry.first_prompt_tokens) +
                           ". Please reduce the length of the input prompt.",
                       "input_tokens");
  }
  return {ErrorCode::Unavailable,
          Blame::Internal,
          true,
          "no worker can serve this request now. Try again shortly",
          "",
          ""};
}

std::uint64_t usable_blocks(const routing::Candidate& candidate) {
  return std::uint64_t{candidate.gpu_blocks} + candidate.cpu_blocks + candidate.storage_blocks;
}

bool is_unpredictable(const Inquiry& inquiry, contract::EngineFamily family) {
  return inquiry.unpredictable[static_cast<std::size_t>(family)];
}

// Returns the number of tokens in the spans before a token.
std::uint64_t tokens_before(std::uint64_t end, const std::vector<TokenSpan>& spans) {
  std::uint64_t tokens = 0;
  for (const TokenSpan& span : spans) {
    if (span.start < end) tokens += std::min(span.length, end - span.start);
  }
  return tokens;
}

// Returns the whole blocks of the prompt that the engine computed, by its own counts.
std::uint64_t computed_blocks(const routing::Job& job, const openai::Usage& usage) {
  // The counts come from the worker. Their limits keep the subtraction from going below 0.
  const std::uint64_t tokens = std::min(usage.prompt_tokens, job.prompt_tokens);
  const std::uint64_t reused = std::min(usage.cached_tokens.value_or(0), tokens);
  return tokens / job.block_size - reused / job.block_size;
}

// FNV-1a of a name, 0 for an empty name.
std::uint64_t digest_of(std::string_view name) {
  if (name.empty()) return 0;
  std::uint64_t digest = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    digest = (digest ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
  }
  return digest;
}

}  // namespace

fleet::Booking booking_of(const Inquiry& inquiry, std::uint64_t reused_blocks) {
  const routing::Job& job = inquiry.job;
  const std::uint64_t touched = routing::touched_blocks(job);
  const std::uint64_t reused = std::min(reused_blocks, touched);
  const std::uint64_t reused_tokens = reused * job.block_size;
  return {.prefill_tokens = job.prompt_tokens - std::min(job.prompt_tokens, reused_tokens),
          .blocks = touched - reused,
          .block_size = job.block_size};
}

LocalSelector::LocalSelector(const Deps& sources)
    : sources_(sources),
      seed_(sources.settings.read()->routing.seed != 0
                ? sources.settings.read()->routing.seed ^ digest_of(sources.replica)
                : static_cast<std::uint64_t>(sources.clock.wall().time_since_epoch().count())) {}

Task<Result<Selection>> LocalSelector::select(const Inquiry& inquiry) {
  auto selection = inquiry.is_read ? choose(inquiry) : least_loaded(inquiry);
  co_return selection;
}

Result<LocalSelector::Shortlist> LocalSelector::match(const Inquiry& inquiry) const {
  Shortlist shortlist;
  shortlist.removals = sources_.removals.position();
  shortlist.asked = sources_.clock.now();
  // The fleet is read first, and the index after it. A worker may become verified between the two
  // reads. Its blocks may have been corrected just before.
  shortlist.fleet = sources_.fleet.snapshot();
  const index::Overlaps overlaps = sources_.index.match(*inquiry.keys);
  for (Destination& destination : destinations_for(*shortlist.fleet, inquiry)) {
    shortlist.candidates.push_back(candidate_of(destination, inquiry, overlaps));
    shortlist.destinations.push_back(std::move(destination));
  }
  if (shortlist.destinations.empty()) return no_worker(*shortlist.fleet, inquiry);
  return shortlist;
}

routing::Candidate LocalSelector::candidate_of(const Destination& destination,
                                               const Inquiry& inquiry,
                                               const index::Overlaps& overlaps) const {
  const fleet::Load load = destination.rank().load->read(sources_.clock.now());
  // Load and capacity count for every worker. Blocks count only after the checks below.
  routing::Candidate candidate{.active_prefill_tokens = static_cast<double>(load.prefill_tokens),
                               .active_blocks = static_cast<double>(load.blocks),
                               .recent_prefill_blocks = load.recent_prefill_blocks,
                               .in_flight = load.in_flight,
                               .kv_usage = destination.rank().kv_usage};
  const auto cache = precise_cache(destination, inquiry.job.block_size);
  const contract::EngineFamily of = destination.worker->spec.family;
  if (!cache || is_unpredictable(inquiry, of)) return candidate;
  const family::Family& family = families::family_of(of);
  const index::CacheOverlap held = overlaps.of(*cache);
  // The worker computes at least the last token. The block with that token therefore saves nothing.
  const auto usable = [&](std::uint64_t leading) {
    return static_cast<std::uint32_t>(
        family.reused_blocks(leading, inquiry.first_prompt_tokens, inquiry.job.block_size));
  };
  candidate.gpu_blocks = usable(held.gpu_blocks);
  candidate.cpu_blocks = usable(held.gpu_blocks + held.cpu_blocks) - candidate.gpu_blocks;
  candidate.storage_blocks = usable(held.gpu_blocks + held.cpu_blocks + held.storage_blocks) -
                             candidate.gpu_blocks - candidate.cpu_blocks;
  return candidate;
}

routing::Decision LocalSelector::decide(const Inquiry& inquiry, const Shortlist& shortlist,
                                        std::uint64_t turn) const {
  // Each turn has random numbers of its own. A decision can thus be repeated, also for an
  // explanation.
  Rng rng(seed_ + turn * 0x9e3779b97f4a7c15ULL);
  const auto settings = sources_.settings.read();
  return routing::select(inquiry.job, shortlist.candidates, {settings->routing, turn}, rng);
}

Result<Selection> LocalSelector::choose(const Inquiry& inquiry) {
  const Shortlist shortlist = SL_TRY(match(inquiry));
  const routing::Decision decision =
      decide(inquiry, shortlist, turn_.fetch_add(1, std::memory_order_relaxed));
  const Destination& destination = shortlist.destinations[decision.chosen];
  const routing::Candidate& candidate = shortlist.candidates[decision.chosen];
  // The audit needs these facts when the answer arrives. By then the load and the index have
  // changed.
  Open attempt;
  attempt.worker = destination.worker;
  // Only an exact prompt proves an error of the index.
  if (inquiry.is_exact && !is_unpredictable(inquiry, destination.worker->spec.family)) {
    attempt.audited = precise_cache(destination, inquiry.job.block_size);
  }
  attempt.keys = inquiry.keys;
  attempt.overlap_blocks = usable_blocks(candidate);
  for (const routing::Candidate& other : shortlist.candidates) {
    attempt.best_blocks = std::max(attempt.best_blocks, usable_blocks(other));
  }
  attempt.images = inquiry.images;
  attempt.job = inquiry.job;
  attempt.busy = candidate.in_flight > 0;
  attempt.waited = candidate.active_prefill_tokens > 0;
  attempt.removals = shortlist.removals;
  attempt.asked = shortlist.asked;
  const std::uint64_t overlap = attempt.overlap_blocks;
  Selection selection = open(destination, booking_of(inquiry, overlap), std::move(attempt));
  selection.overlap_blocks = overlap;
  selection.prompt_blocks = inquiry.keys->size();
  selection.block_size = inquiry.job.block_size;
  selection.reason = routing::name_of(decision.reason);
  selection.score = decision.scores[decision.chosen];
  sources_.metrics.counter(contract::kDecisionsTotal, {selection.reason}).add();
  return selection;
}

Result<Selection> LocalSelector::least_loaded(const Inquiry& inquiry) {
  const auto fleet = sources_.fleet.snapshot();
  std::optional<Destination> chosen;
  // Without keys only the number of requests is comparable.
  std::uint32_t least = 0;
  for (const Destination& destination : destinations_for(*fleet, inquiry)) {
    const std::uint32_t in_flight = destination.rank().load->read(sources_.clock.now()).in_flight;
    if (chosen && in_flight >= least) continue;
    chosen = destination;
    least = in_flight;
  }
  if (!chosen) return no_worker(*fleet, inquiry);
  Open attempt;
  attempt.worker = chosen->worker;
  // The prompt is not read, and so its load is unknown. Only the request itself counts.
  Selection selection = open(*chosen, {}, std::move(attempt));
  selection.reason = "least_loaded";
  sources_.metrics.counter(contract::kDecisionsTotal, {selection.reason}).add();
  return selection;
}

Selection LocalSelector::open(const Destination& destination, const fleet::Booking& booking,
                              Open attempt) {
  const fleet::Worker& worker = *destination.worker;
  Selection selection{.worker = worker.spec.name,
                      .host = worker.spec.host,
                      .port = worker.spec.port,
                      .rank = destination.rank_number(),
                      .family = worker.spec.family};
  // The load is reserved before the id is known to anyone. No end can come before it.
  attempt.booked = destination.rank().load->reserve(booking, sources_.clock.now());
  const MutexLock lock(mutex_);
  selection.reservation = next_++;
  open_.emplace(selection.reservation, std::move(attempt));
  return selection;
}

std::optional<Selection> LocalSelector::adopt(const Adoption& work) {
  Destination destination{.worker = sources_.fleet.snapshot()->find(work.worker)};
  if (destination.worker == nullptr) return std::nullopt;
  for (; destination.place < destination.worker->ranks.size(); ++destination.place) {
    if (destination.rank_number() != work.rank) continue;
    // No prediction belongs to an adopted request. It has nothing to audit.
    Open attempt;
    attempt.worker = destination.worker;
    Selection selection = open(destination, work.booking, std::move(attempt));
    selection.block_size = work.booking.block_size;
    selection.reason = "adopted";
    if (work.is_decoding) first_token(selection.reservation);
    return selection;
  }
  return std::nullopt;
}

void LocalSelector::first_token(ReservationId reservation) {
  const MutexLock lock(mutex_);
  const auto entry = open_.find(reservation);
  if (entry == open_.end()) return;
  entry->second.booked.first_token();
  entry->second.worker->life->raise();
}

std::shared_ptr<fleet::LifeSign> LocalSelector::life(ReservationId reservation) {
  const MutexLock lock(mutex_);
  const auto entry = open_.find(reservation);
  // The reservation may have ended. Raising this sign has no effect.
  if (entry == open_.end()) return std::make_shared<fleet::LifeSign>();
  return entry->second.worker->life;
}

std::size_t LocalSelector::open_reservations() const {
  const MutexLock lock(mutex_);
  return open_.size();
}

// The load stays reserved until the fleet and the audit have the result.
void LocalSelector::end(ReservationId reservation, const Ending& ending) {
  std::optional<Open> attempt;
  {
    const MutexLock lock(mutex_);
    const auto entry = open_.find(reservation);
    if (entry == open_.end()) return;
    attempt = std::move(entry->second);
    open_.erase(entry);
  }
  const std::string& worker = attempt->worker->spec.name;
  if (ending.kind == Ending::Kind::Failed && ending.failure) {
    sources_.fleet.report_failure(worker, *ending.failure);
  }
  if (ending.kind != Ending::Kind::Answered) return;
  // A 500 may be the fault of the request (vLLM 0.32: a media host that rejects it). So it says
  // nothing about the worker's health.
  if (ending.status < 500) sources_.fleet.report_success(worker);
  if (ending.status == 200 && ending.usage) {
    attempt->worker->computed->add(computed_blocks(attempt->job, *ending.usage));
  }
  compare(*attempt, ending);
}

// The worker's own count is the truth. Answers without usage prove nothing. These are errors and
// requests whose clients have left.
void LocalSelector::compare(const Open& attempt, const Ending& ending) {
  if (ending.status != 200 || !ending.usage || !attempt.audited) return;
  const fleet::Worker& worker = *attempt.worker;
  openai::Usage usage = *ending.usage;
  const std::uint64_t predicted = attempt.overlap_blocks * attempt.job.block_size;
  const bool same_prompt = usage.prompt_tokens == attempt.job.prompt_tokens &&
                           usage.cached_tokens.value_or(0) <= attempt.job.prompt_tokens;
  if (!same_prompt) {
    sources_.metrics.counter(contract::kPromptTokenMismatchTotal, {worker.spec.name}).add();
    log(LogLevel::Warn, "the engine and the router count different numbers of prompt tokens",
        {{"request_id", ending.request_id},
         {"worker", worker.spec.name},
         {"engine_tokens", usage.prompt_tokens},
         {"engine_cached_tokens", usage.cached_tokens.value_or(0)},
         {"router_tokens", attempt.job.prompt_tokens}});
  }
  // Metrics sum these counts over all workers. A worker with wrong counts must not distort them.
  usage.prompt_tokens = attempt.job.prompt_tokens;
  if (usage.cached_tokens) {
    usage.cached_tokens = std::min(*usage.cached_tokens, usage.prompt_tokens);
  }
  // After a wait for other requests, the time to the first token does not show the worker's speed.
  const bool tells_pace = same_prompt && !attempt.waited;
  count_saved(worker, usage, tells_pace ? ending.first_token : std::nullopt);
  const std::span claimed(*attempt.keys);
  sources_.compare(
      {.request_id = ending.request_id,
       .worker = worker.spec.name,
       .cache = *attempt.audited,
       .prompt_tokens = usage.prompt_tokens,
       .best = attempt.best_blocks * attempt.job.block_size,
       .predicted = predicted,
       .predicted_image = tokens_before(predicted, attempt.images),
       .actual = usage.cached_tokens,
       .leaves_zero_out = families::family_of(worker.spec.family).leaves_zero_out(worker.version),
       .same_prompt = same_prompt,
       .busy = attempt.busy,
       .blocks = claimed.first(attempt.overlap_blocks),
       .removals = attempt.removals,
       .decided = attempt.asked});
}

void LocalSelector::count_saved(const fleet::Worker& worker, const openai::Usage& usage,
                                const std::optional<Duration>& first_token) {
  const bool leaves_zero_out =
      families::family_of(worker.spec.family).leaves_zero_out(worker.version);
  // An absent count means 0 only for engines that leave out zeros.
  if (!usage.cached_tokens && !leaves_zero_out) return;
  const std::uint64_t reused = usage.cached_tokens.value_or(0);
  if (first_token) {
    worker.pace->learn(usage.prompt_tokens - reused,
                       std::chrono::duration<double>(*first_token).count());
  }
  sources_.metrics.counter(contract::kSavedPrefillSecondsTotal, {worker.spec.name})
      .add(worker.pace->saved(reused));
}

Task<Result<Explanation>> LocalSelector::explain(const Inquiry& inquiry) {
  auto explanation = explained(inquiry);
  co_return explanation;
}

Result<Explanation> LocalSelector::explained(const Inquiry& inquiry) const {
  const Shortlist shortlist = SL_TRY(match(inquiry));
  const routing::Decision decision =
      decide(inquiry, shortlist, turn_.load(std::memory_order_relaxed));
  Explanation explanation;
  explanation.reason = routing::name_of(decision.reason);
  // Destinations are in the order of the workers.
  std::size_t i = 0;
  for (const auto& worker : shortlist.fleet->workers) {
    Explanation::Entry entry{.worker = worker->spec.name,
                             .state = std::string(name_of(worker->state))};
    for (; i < shortlist.destinations.size(); ++i) {
      const Destination& destination = shortlist.destinations[i];
      if (destination.worker != worker) break;
      if (i == decision.chosen) explanation.chosen = explanation.entries.size();
      entry.is_eligible = true;
      entry.rank = destination.rank_number();
      entry.candidate = shortlist.candidates[i];
      entry.score = decision.scores[i];
      explanation.entries.push_back(entry);
    }
    if (!entry.is_eligible) explanation.entries.push_back(std::move(entry));
  }
  return explanation;
}

}  // namespace sightline::selection
