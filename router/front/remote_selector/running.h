// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/runtime/deadlines.h"
#include "common/runtime/io_pool.h"

#include "router/front/remote_selector/remote_selector.h"

namespace sightline::remote_selector {

// Counts a task on the pool that uses the selector. stop() waits until the count is 0.
class RemoteSelector::Running {
 public:
  explicit Running(RemoteSelector& selector) : selector_(&selector) {
    const MutexLock lock(selector_->mutex_);
    ++selector_->running_;
  }
  Running(Running&& other) noexcept : selector_(std::exchange(other.selector_, nullptr)) {}
  Running& operator=(Running&&) = delete;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (selector_ != nullptr) selector_->is_done();
  }

 private:
  RemoteSelector* selector_;
};

// Pauses a coroutine. It must run on an I/O thread of the pool.
inline Task<void> pause(IoPool& pool, Duration time) {
  Gate over;
  Deadline end(pool.deadlines(pool.index_here()), [&over] { over.open(); });
  end.set(time);
  co_await over.wait();
}

}  // namespace sightline::remote_selector
