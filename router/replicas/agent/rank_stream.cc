// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/agent/rank_stream.h"

#include <utility>

namespace sightline::agent {

using operations::CacheName;
using operations::FeedHealth;

namespace {

// The epochs of one feed. A rank's cache begins far fewer in its life.
constexpr std::uint64_t kEpochsPerFeed = std::uint64_t{1} << 32U;

constexpr char kNoFeed[] = "the agent does not read its KV events yet";

operations::CacheFacts without_feed(std::string reason) {
  operations::CacheFacts facts;
  facts.health = FeedHealth::ToldBadly;
  facts.reason = std::move(reason);
  return facts;
}

}  // namespace

RankStream::RankStream(Deps setup, const Clock& clock)
    : name_(setup.name),
      told_due_(std::move(setup.told_due)),
      clock_(clock),
      publisher_(std::move(setup.name), std::move(setup.agent), std::move(setup.options),
                 std::move(setup.draw)) {
  const MutexLock lock(mutex_);
  draining_ = setup.is_draining;
  told_.facts = without_feed(kNoFeed);
  retell(clock_.now());
}

CacheName RankStream::cache_name(std::uint64_t epoch) const {
  // The upper half counts feeds, so two feeds never have the same epoch.
  return {.worker = name_.worker, .rank = name_.rank, .epoch = feeds_ * kEpochsPerFeed + epoch};
}

void RankStream::retell(Instant now) {
  // The feed does not know that the agent drains.
  told_.facts.draining = draining_;
  publisher_.tell(cache_name(told_.epoch), told_.facts, told_.lag_by_stamp, now);
  settle();
}

void RankStream::settle() {
  // A dump or an open request needs the next turn immediately.
  const bool is_busy = publisher_.is_making_dump() || publisher_.has_wish();
  due_ = is_busy ? clock_.now() : publisher_.deadline().value_or(Instant::max());
}

void RankStream::begin_feed(CacheId cache) {
  {
    const MutexLock lock(mutex_);
    feed_ = cache;
    ++feeds_;
    // The drained engine has ended. This is another one.
    if (std::exchange(drained_engine_ended_, false)) draining_ = false;
    told_ = {};
    retell(clock_.now());
  }
  // Outside of the lock: the callback wakes a thread that takes it.
  told_due_(due_);
}

void RankStream::end_feed(CacheId cache) {
  {
    const MutexLock lock(mutex_);
    if (feed_ != cache) return;
    feed_.reset();
    ++feeds_;
    // Only an engine that was drained and ended gives the next one requests again.
    drained_engine_ended_ = draining_;
    told_ = {.epoch = 0, .facts = without_feed(kNoFeed), .lag_by_stamp = {}};
    retell(clock_.now());
  }
  told_due_(due_);
}

void RankStream::take(CacheId cache, const CacheName& name,
                      const operations::Operation& operation) {
  const MutexLock lock(mutex_);
  if (feed_ != cache) return;
  // The clock is read once for each reading of events, not for each operation.
  if (!std::exchange(is_timed_, true)) publisher_.pass(clock_.now());
  publisher_.take(cache_name(name.epoch), operation);
}

void RankStream::tell(CacheId cache, const CacheReport& told) {
  {
    const MutexLock lock(mutex_);
    if (feed_ != cache) return;
    // This reading of events is over. The next one asks the clock again.
    is_timed_ = false;
    told_ = told;
    retell(clock_.now());
  }
  told_due_(due_);
}

void RankStream::explain(const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    // An unchanged reason needs no beat.
    if (feed_ || told_.facts.reason == reason) return;
    told_.facts = without_feed(reason);
    retell(clock_.now());
  }
  told_due_(due_);
}

void RankStream::drain() {
  {
    const MutexLock lock(mutex_);
    draining_ = true;
    // Without a feed, the engine has ended already, or never began.
    drained_engine_ended_ = !feed_;
    retell(clock_.now());
  }
  told_due_(due_);
}

void RankStream::hear(const frames::Message& message, Instant now) {
  {
    const MutexLock lock(mutex_);
    publisher_.hear(message, now);
    settle();
  }
  told_due_(due_);
}

void RankStream::limit_payload(std::size_t bytes_max) {
  {
    const MutexLock lock(mutex_);
    publisher_.limit_payload(bytes_max);
    settle();
  }
  told_due_(due_);
}

std::vector<publisher::Outgoing> RankStream::bye() {
  const MutexLock lock(mutex_);
  return publisher_.bye();
}

RankStream::Actions RankStream::turn(Instant now) {
  const MutexLock lock(mutex_);
  Actions turn;
  // This comes first: a dump that it completes is ready in the same turn.
  publisher_.step(now);
  turn.outgoing = publisher_.take_ready(now);
  if (publisher_.take_look_wish()) turn.look = feed_;
  if (publisher_.take_relearn_wish()) turn.relearn = feed_;
  turn.has_replay = told_.facts.has_replay;
  settle();
  return turn;
}

bool RankStream::has_feed() const {
  const MutexLock lock(mutex_);
  return feed_.has_value();
}

StreamView RankStream::view() const {
  const MutexLock lock(mutex_);
  StreamView view;
  view.name = name_;
  view.epoch = publisher_.epoch();
  view.position = view.epoch ? publisher_.position() : 0;
  view.digest = publisher_.held().digest();
  view.facts = told_.facts;
  view.has_feed = feed_.has_value();
  view.is_capped = publisher_.held().is_capped();
  view.left_out = publisher_.held().left_out_total();
  view.memory_bytes = publisher_.memory_bytes();
  view.lag_by_stamp = told_.lag_by_stamp;
  view.statistics = publisher_.statistics();
  return view;
}

}  // namespace sightline::agent
