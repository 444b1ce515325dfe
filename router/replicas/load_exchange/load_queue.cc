// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load_exchange/load_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sightline::load_exchange {

fleet::LoadObserver LoadQueue::observer_of(std::shared_ptr<LoadQueue> queue) {
  return [queue = std::move(queue)](const fleet::LoadChange& change) { queue->put(change); };
}

void LoadQueue::put(const fleet::LoadChange& change) {
  // Computed without the lock. So threads wait less for it.
  const load::Delta delta = load::delta_of(change);
  Wake wake;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    if (holds_nothing()) wake = wake_;
    content_.deltas[change.rank] += delta;
  }
  // Outside of the lock: the woken thread takes it next.
  if (wake) (*wake)();
}

void LoadQueue::put_taken(std::vector<load::ReservationName> names) {
  if (names.empty()) return;
  Wake wake;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    // One call is enough: the reader takes everything.
    if (holds_nothing()) wake = wake_;
    auto& taken = content_.taken;
    const std::size_t fit = std::min(names.size(), kTakenMax - taken.size());
    content_.taken_left_out += names.size() - fit;
    names.resize(fit);
    std::move(names.begin(), names.end(), std::back_inserter(taken));
  }
  if (wake) (*wake)();
}

void LoadQueue::open(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::make_shared<const std::function<void()>>(std::move(wake));
}

void LoadQueue::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  wake_ = nullptr;
  content_ = {};
}

LoadQueue::Content LoadQueue::take() {
  const MutexLock lock(mutex_);
  return std::exchange(content_, {});
}

bool LoadQueue::is_empty() const {
  const MutexLock lock(mutex_);
  return holds_nothing();
}

}  // namespace sightline::load_exchange
