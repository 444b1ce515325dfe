// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/feeds.h"

namespace sightline::roles {

std::optional<operations::CacheFacts> Feeds::facts(CacheId cache) const {
  if (const auto status = here_.status(cache)) return status->facts;
  if (by_agents_ == nullptr) return std::nullopt;
  const auto status = by_agents_->status(cache);
  return status ? std::optional(status->facts) : std::nullopt;
}

Instant Feeds::heard_at(CacheId cache) const {
  if (const auto status = here_.status(cache)) return status->heard_at;
  if (by_agents_ == nullptr) return {};
  const auto status = by_agents_->status(cache);
  return status && status->news_at ? *status->news_at : Instant{};
}

void Feeds::look(CacheId cache) const {
  // A cache is followed by at most one of both, the other ignores it.
  here_.look(cache);
  if (by_agents_ != nullptr) by_agents_->look(cache);
}

void Feeds::relearn(CacheId cache, bool from_replay) const {
  here_.relearn(cache, from_replay);
  if (by_agents_ != nullptr) by_agents_->relearn(cache);
}

bool Feeds::ask_again(CacheId cache) const {
  if (const auto status = here_.status(cache)) {
    // Without a replay, the present blocks would be lost too.
    if (!status->facts.has_replay || status->facts.replay_silent) return false;
    here_.relearn(cache, true);
    return true;
  }
  if (by_agents_ == nullptr || !by_agents_->status(cache)) return false;
  by_agents_->ask_again(cache);
  return true;
}

void Feeds::remove(CacheId cache) const {
  here_.remove(cache);
  if (by_agents_ != nullptr) by_agents_->remove(cache);
}

}  // namespace sightline::roles
