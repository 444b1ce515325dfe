// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/followed_feeds.h"

#include <utility>

#include "common/base/check.h"

#include "router/replicas/followed/followed_state.h"

namespace sightline::followed {
namespace {

constexpr char kAway[] = "NATS cannot be reached: messages of agents and routers do not arrive";
constexpr char kLate[] =
    "NATS is late: this router's own messages take longer than replica.stale_after to return";

}  // namespace

void FollowedFeeds::State::push(StreamCommand command) {
  {
    const MutexLock lock(mutex);
    commands.push_back(std::move(command));
  }
  // After the lock is released, because the woken thread takes it first.
  door->wake();
}

bool FollowedFeeds::State::is_wanted(CacheId cache) const {
  const MutexLock lock(mutex);
  return statuses.contains(cache);
}

FollowedFeeds::FollowedFeeds(FollowedOptions options, const Deps& deps)
    : state_(std::make_unique<State>(std::move(options), deps)) {
  // The state exists before the thread that uses it.
  state_->thread.emplace("sl-replica",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

FollowedFeeds::~FollowedFeeds() {
  state_->thread->request_stop();
  state_->door->wake();
  state_->thread->join();
}

void FollowedFeeds::add(CacheId cache, frames::StreamName stream) {
  // The status exists before the command is carried out. status() never misses a cache after add().
  {
    const MutexLock lock(state_->mutex);
    SL_CHECK(
        state_->statuses.emplace(cache, FollowedStatus{.cache = cache, .stream = stream}).second);
  }
  state_->push({.kind = StreamCommand::Kind::Follow, .cache = cache, .stream = std::move(stream)});
}

void FollowedFeeds::remove(CacheId cache) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->statuses.erase(cache) == 0) return;
  }
  state_->push({.kind = StreamCommand::Kind::Forget, .cache = cache});
}

void FollowedFeeds::look(CacheId cache) {
  // Commands about unknown caches would only wake the thread.
  if (state_->is_wanted(cache)) state_->push({.kind = StreamCommand::Kind::Look, .cache = cache});
}

void FollowedFeeds::relearn(CacheId cache) {
  if (state_->is_wanted(cache))
    state_->push({.kind = StreamCommand::Kind::Relearn, .cache = cache});
}

void FollowedFeeds::ask_again(CacheId cache) {
  if (state_->is_wanted(cache))
    state_->push({.kind = StreamCommand::Kind::AskAgain, .cache = cache});
}

std::optional<FollowedStatus> FollowedFeeds::status(CacheId cache) const {
  const MutexLock lock(state_->mutex);
  const auto entry = state_->statuses.find(cache);
  if (entry == state_->statuses.end()) return std::nullopt;
  return entry->second;
}

std::vector<FollowedStatus> FollowedFeeds::statuses() const {
  const MutexLock lock(state_->mutex);
  std::vector<FollowedStatus> all;
  for (const auto& [cache, status] : state_->statuses) all.push_back(status);
  return all;
}

NatsFreshness FollowedFeeds::nats() const {
  const State& state = *state_;
  const Instant now = state.deps.clock.now();
  const MutexLock lock(state.mutex);
  NatsFreshness nats{.round_trip = state.round_trip.taken(now), .stale = {}};
  if (now - state.round_trip.fresh_at() < state.options.follower.stale_after) return nats;
  // NATS counts as stale also when it is connected: a server can deliver late without an error.
  const bool is_there = state.deps.control.connected() && state.deps.events.connected();
  nats.stale = is_there ? kLate : kAway;
  return nats;
}

std::size_t FollowedFeeds::held_bytes() const { return state_->budget->held(); }

Duration FollowedFeeds::turn_age() const {
  const Instant began = state_->turn_began;
  return began == kNoTurn ? Duration::zero() : state_->deps.clock.now() - began;
}

}  // namespace sightline::followed
