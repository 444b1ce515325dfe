// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/waiting_claims.h"

#include <algorithm>
#include <utility>

namespace sightline::audit {

namespace {

// The longest single wait. The loop continues a longer one.
constexpr std::chrono::hours kWaitMax{1};

}  // namespace

std::size_t WaitingClaim::bytes() const {
  return sizeof(*this) + worker.capacity() + request_id.capacity() +
         claim.missing.capacity() * sizeof(keys::BlockKey);
}

bool WaitingClaims::add(WaitingClaim claim, Instant due) {
  {
    const MutexLock lock(mutex_);
    const std::size_t bytes = claim.bytes();
    if (bytes_ + bytes > limits_.bytes_max) return false;
    const auto found = queues_.find(claim.claim.cache);
    // One rank with many wrong claims must not keep the claims of others out.
    if (found != queues_.end() && found->second.size() >= limits_.per_engine_max) return false;
    bytes_ += bytes;
    queues_[claim.claim.cache].push_back({std::move(claim), due});
  }
  // Only the audit's thread waits.
  changed_.notify_one();
  return true;
}

Instant WaitingClaims::next_due() const {
  Instant next = Instant::max();
  for (const auto& [cache, queue] : queues_) next = std::min(next, queue.front().due);
  return next;
}

std::vector<CacheId> WaitingClaims::wait(Instant until) {
  const MutexLock lock(mutex_);
  std::vector<CacheId> due;
  Instant now = clock_.now();
  for (Instant next = next_due(); !closed_ && now < until && now < next; next = next_due()) {
    changed_.wait_for(mutex_, std::min<Duration>(std::min(until, next) - now, kWaitMax));
    now = clock_.now();
  }
  for (const auto& [cache, queue] : queues_) {
    if (queue.front().due <= now) due.push_back(cache);
  }
  return due;
}

std::optional<WaitingClaim> WaitingClaims::take(CacheId cache) {
  const MutexLock lock(mutex_);
  const auto found = queues_.find(cache);
  if (found == queues_.end() || found->second.front().due > clock_.now()) return std::nullopt;
  WaitingClaim claim = std::move(found->second.front().claim);
  bytes_ -= claim.bytes();
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return claim;
}

void WaitingClaims::put_back(WaitingClaim claim, Instant due) {
  const MutexLock lock(mutex_);
  bytes_ += claim.bytes();
  queues_[claim.claim.cache].push_front({std::move(claim), due});
}

void WaitingClaims::forget(CacheId cache) {
  const MutexLock lock(mutex_);
  const auto found = queues_.find(cache);
  if (found == queues_.end()) return;
  for (const DueClaim& waiting : found->second) bytes_ -= waiting.claim.bytes();
  queues_.erase(found);
}

void WaitingClaims::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace sightline::audit
