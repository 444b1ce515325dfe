// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/feed_watch.h"

#include <utility>

#include "common/runtime/entropy.h"

#include "router/cache/events/normaliser_options.h"
#include "router/engine/families/families.h"

namespace sightline::roles {

FeedWatch::FeedWatch(const Feeds& feeds, const prepare::LoadedModel& model, std::string scope_model)
    : feeds_(feeds), model_(model), scope_model_(std::move(scope_model)) {}

void FeedWatch::feed_ready(const fleet::Worker& worker, const fleet::Rank& rank) {
  if (!rank.feed->endpoints.by_agent) return read_here(worker, rank);
  if (feeds_.by_agents() == nullptr) return;
  feeds_.by_agents()->add(rank.feed->cache, {.worker = worker.spec.name, .rank = rank.number});
}

void FeedWatch::read_here(const fleet::Worker& worker, const fleet::Rank& rank) {
  const fleet::Feed& feed = *rank.feed;
  subscriber::FeedEndpoints endpoints{.events = feed.endpoints.events, .bind = feed.endpoints.bind};
  if (!feed.endpoints.replay.empty()) endpoints.replay = feed.endpoints.replay;
  events::NormaliserOptions options;
  options.id = feed.cache;
  options.cache = {.worker = worker.spec.name, .rank = rank.number};
  options.format = &families::family_of(worker.spec.family);
  options.model = scope_model_;
  // A worker's only rank may name any rank in its events, so only several ranks are checked.
  if (worker.has_several_ranks()) options.rank = rank.number;
  options.adapters = feed.adapters;
  // The engine must not know it, see wire::EngineHashing.
  options.hash_seed = runtime::secure_random_u64();
  options.copies = feed.copies;
  const std::uint32_t by_operator = worker.block_size.by_operator();
  if (by_operator > 0) options.block_size_configured = by_operator;
  const model::Placeholders& placeholders = model_.profile.placeholders;
  for (const auto& token : {placeholders.image, placeholders.video}) {
    if (token) options.media_tokens.push_back(*token);
  }
  // Some families write a video as one run for each of its frames, so only images count here.
  if (placeholders.image) options.run_tokens.push_back(*placeholders.image);
  feeds_.here().add(endpoints, std::move(options));
}

void FeedWatch::feed_removed(CacheId cache) { feeds_.remove(cache); }

}  // namespace sightline::roles
