// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <utility>

#include "common/base/mutex.h"

namespace sightline {

// Writers swap an immutable snapshot, many readers take it.
// Thread safety: all methods from any thread; the order of several writers is their own affair. A
// reader's snapshot stays valid for as long as it holds the pointer.
template <class T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> initial) : current_(std::move(initial)) {}

  [[nodiscard]] std::shared_ptr<const T> read() const {
    const MutexLock lock(mutex_);
    return current_;
  }

  void publish(std::shared_ptr<const T> next) {
    {
      const MutexLock lock(mutex_);
      current_.swap(next);
    }
    // The old snapshot, if this was its last owner, is destroyed here, outside the lock.
  }

 private:
  mutable Mutex mutex_;  // held for a pointer copy only
  std::shared_ptr<const T> current_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline
