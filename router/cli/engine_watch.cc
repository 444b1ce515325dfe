// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/engine_watch.h"

#include <utility>

#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"

#include "router/cache/operations/facts.h"
#include "router/engine/families/families.h"

namespace sightline::cli {

namespace {

std::uint64_t seed_nobody_knows() {
  std::uint64_t seed = 0;
  SL_CHECK(::getentropy(&seed, sizeof seed) == 0);
  return seed;
}

// An engine that has announced nothing may have nothing, unless nobody can say.
fleet::EarlierBlocks earlier_blocks(const events::FeedStatus& status) {
  if (status.facts.missing.forgotten && status.facts.replay_silent)
    return fleet::EarlierBlocks::Refused;
  const bool is_missed = status.facts.sequence && status.facts.missing.forgotten;
  return is_missed ? fleet::EarlierBlocks::Missed : fleet::EarlierBlocks::Known;
}

}  // namespace

EngineWatch::EngineWatch(subscriber::EventSubscriber& subscriber, const prepare::Model& model,
                         std::string scope_model)
    : subscriber_(subscriber), model_(model), scope_model_(std::move(scope_model)) {}

void EngineWatch::feed_ready(const fleet::Worker& worker, const fleet::Rank& rank) {
  const fleet::Feed& feed = *rank.feed;
  subscriber::FeedEndpoints endpoints{.events = feed.endpoints.events, .bind = feed.endpoints.bind};
  if (!feed.endpoints.replay.empty()) endpoints.replay = feed.endpoints.replay;
  events::NormaliserOptions options;
  options.id = feed.cache;
  options.cache = {.worker = worker.name, .rank = rank.number};
  options.format = &families::family_of(worker.family);
  options.model = scope_model_;
  if (worker.has_several_ranks()) options.rank = rank.number;
  options.adapters = feed.adapters;
  options.hash_seed = seed_nobody_knows();
  if (feed.copies == contract::Copies::LastCopy) options.copies = events::CopyPolicy::LastCopy;
  const std::uint32_t by_operator = worker.block_size.by_operator();
  if (by_operator > 0) options.block_size_configured = by_operator;
  const model::Placeholders& placeholders = model_.profile.placeholders;
  for (const auto& token : {placeholders.image, placeholders.video}) {
    if (token) options.media_tokens.push_back(*token);
  }
  // A video of some families is one run for each of its frames.
  if (placeholders.image) options.run_tokens.push_back(*placeholders.image);
  subscriber_.add(endpoints, std::move(options));
}

void EngineWatch::feed_removed(CacheId cache) { subscriber_.remove(cache); }

void tell_fleet(fleet::Fleet& fleet, const events::FeedStatus& status) {
  const auto size =
      status.facts.block_size_conflict ? status.facts.block_size_conflict : status.facts.block_size;
  // A configured size that no event has confirmed is not news.
  if (size && status.facts.sequence) {
    fleet.set_block_size_from_events(status.cache, *size,
                                     status.facts.block_size_conflict.has_value());
  }
  fleet.set_event_health(status.cache, reason_of(status.facts.health), earlier_blocks(status));
}

void tell_refusal(fleet::Fleet& fleet, CacheId engine, const Error& error) {
  fleet.set_event_health(engine, "its events cannot be read: " + error.message);
  const auto worker = fleet.snapshot()->find(engine);
  if (!worker) return;
  log(LogLevel::Error, "cannot follow the events of a worker",
      {{"worker", worker->name}, {"rank", worker->find(engine)->number}, {"error", error.message}});
}

}  // namespace sightline::cli
