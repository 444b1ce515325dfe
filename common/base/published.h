// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <utility>

#include "common/base/mutex.h"

namespace sightline {

// Holds an immutable snapshot: writers replace it, many readers take it.
// Thread safety: all methods from any thread. Several writers must agree on their order. A reader's
// snapshot stays valid while the reader holds the pointer.
template <class T>
class Published {
 public:
  // `initial` is not null.
  explicit Published(std::shared_ptr<const T> initial) : current_(std::move(initial)) {}

  // The latest snapshot.
  [[nodiscard]] std::shared_ptr<const T> read() const {
    const MutexLock lock(mutex_);
    return current_;
  }

  // Replaces the snapshot for later reads.
  void publish(std::shared_ptr<const T> next) {
    {
      const MutexLock lock(mutex_);
      current_.swap(next);
    }
    // If this was the last owner of the old snapshot, it is destroyed here, outside the lock.
  }

 private:
  // Held only to copy a pointer.
  mutable Mutex mutex_;
  std::shared_ptr<const T> current_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline
