// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/bench/replicas/router.h"

#include <algorithm>
#include <utility>

#include "router/workers/routing/select.h"

namespace sightline::quality {
namespace {

// The same value as between real routers.
constexpr Duration kSourceTimeout = std::chrono::seconds(3);

}  // namespace

SimulatedRouter::SimulatedRouter(Options options, Timeline& timeline)
    : options_(std::move(options)),
      timeline_(timeline),
      rng_(options_.seed),
      kv_usage_(options_.engines),
      book_(
          {.observer = options_.tell
                           ? [this](const fleet::LoadChange& change) { booked(change.rank.worker); }
                           : fleet::LoadObserver{},
           .source_timeout = kSourceTimeout}) {
  for (std::uint32_t engine = 0; engine < options_.engines; ++engine) {
    const std::string name = std::to_string(engine);
    engines_.emplace(name, engine);
    cells_.push_back(book_.open({.worker = name, .rank = 0}));
  }
}

std::uint32_t SimulatedRouter::choose(std::uint64_t number, const TracedRequest& request) {
  const Instant now = timeline_.now();
  const index::Overlaps overlaps = index_.match(request.whole_blocks);
  const std::uint32_t usable = (request.prompt_tokens - 1) / kBlockTokens;
  std::vector<routing::Candidate> candidates(options_.engines);
  for (std::uint32_t engine = 0; engine < options_.engines; ++engine) {
    const fleet::Load load = cells_[engine]->read(now);
    const std::uint32_t held = overlaps.of(CacheId{engine}).gpu_blocks;
    candidates[engine] = {.gpu_blocks = std::min(held * kTraceBlockTokens / kBlockTokens, usable),
                          .active_prefill_tokens = static_cast<double>(load.prefill_tokens),
                          .active_blocks = static_cast<double>(load.blocks),
                          .recent_prefill_blocks = load.recent_prefill_blocks,
                          .in_flight = load.in_flight,
                          .kv_usage = kv_usage_[engine]};
  }
  const routing::Job job{.prompt_tokens = request.prompt_tokens, .block_size = kBlockTokens};
  const auto decision = routing::select(job, candidates, {options_.routing, turn_++}, rng_);
  const std::uint64_t reused = candidates[decision.chosen].gpu_blocks;
  const fleet::Booking booking{.prefill_tokens = request.prompt_tokens - reused * kBlockTokens,
                               .blocks = routing::touched_blocks(job) - reused,
                               .block_size = kBlockTokens};
  open_.emplace(number, cells_[decision.chosen]->reserve(booking, now));
  return static_cast<std::uint32_t>(decision.chosen);
}

void SimulatedRouter::apply(std::uint32_t engine, const CacheChange& change) {
  index_.remove(CacheId{engine}, index::Tier::Gpu, change.removed);
  for (const auto& run : change.stored) index_.store(CacheId{engine}, index::Tier::Gpu, run);
}

void SimulatedRouter::hear(const std::string& router, const std::vector<ToldLoad>& told) {
  for (const ToldLoad& one : told) {
    book_.set_others(router, {.worker = std::to_string(one.engine), .rank = 0}, one.load,
                     timeline_.now());
  }
}

void SimulatedRouter::booked(const std::string& engine) {
  if (changed_.empty()) timeline_.after(options_.load_batch, [this] { tell_changed(); });
  changed_.insert(engines_.at(engine));
}

void SimulatedRouter::tell_changed() {
  std::vector<ToldLoad> told;
  for (const std::uint32_t engine : std::exchange(changed_, {})) {
    told.push_back({engine, cells_[engine]->own(timeline_.now())});
  }
  options_.tell(told);
}

void SimulatedRouter::tell_all() {
  if (!options_.tell) return;
  std::vector<ToldLoad> told;
  for (std::uint32_t engine = 0; engine < options_.engines; ++engine) {
    told.push_back({engine, cells_[engine]->own(timeline_.now())});
  }
  options_.tell(told);
}

}  // namespace sightline::quality
