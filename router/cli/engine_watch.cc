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

void EngineWatch::engine_ready(const fleet::EngineEndpoints& engine) {
  subscriber::FeedEndpoints endpoints{.events = engine.events, .bind = engine.bind};
  if (!engine.replay.empty()) endpoints.replay = engine.replay;
  events::NormaliserOptions options;
  options.id = engine.engine;
  options.cache = {.worker = engine.worker, .rank = engine.rank};
  options.format = &families::family_of(engine.family);
  options.model = scope_model_;
  if (engine.several_ranks) options.rank = engine.rank;
  options.adapters = engine.adapters;
  options.hash_seed = seed_nobody_knows();
  if (engine.copies == contract::Copies::LastCopy) options.copies = events::CopyPolicy::LastCopy;
  if (engine.block_size_explicit > 0) options.block_size_configured = engine.block_size_explicit;
  const model::Placeholders& placeholders = model_.profile.placeholders;
  for (const auto& token : {placeholders.image, placeholders.video}) {
    if (token) options.media_tokens.push_back(*token);
  }
  // A video of some families is one run for each of its frames.
  if (placeholders.image) options.run_tokens.push_back(*placeholders.image);
  subscriber_.add(endpoints, std::move(options));
}

void EngineWatch::engine_removed(CacheId engine) { subscriber_.remove(engine); }

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
  for (const auto& endpoints : worker->engines) {
    if (endpoints.engine != engine) continue;
    log(LogLevel::Error, "cannot follow the events of a worker",
        {{"worker", worker->name}, {"rank", endpoints.rank}, {"error", error.message}});
  }
}

}  // namespace sightline::cli
