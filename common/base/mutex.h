// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"

// What threads share is declared with the mutex that guards it; lint has clang check every use
// (rule thread-safety). For other compilers these words are empty.
#if defined(__clang__)
#define SL_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define SL_THREAD_ATTRIBUTE(...)
#endif

// A type that is locked, and one that holds such a lock from its construction to its end.
#define SL_CAPABILITY(name) SL_THREAD_ATTRIBUTE(capability(name))
#define SL_SCOPED_CAPABILITY SL_THREAD_ATTRIBUTE(scoped_lockable)
// A member that is read and written under this mutex only; of a shared one, read under either lock.
#define SL_GUARDED_BY(mutex) SL_THREAD_ATTRIBUTE(guarded_by(mutex))
// A function, or a lambda behind its parameters, whose callers hold these mutexes, at least shared,
// or do not hold them.
#define SL_REQUIRES(...) SL_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SL_REQUIRES_SHARED(...) SL_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define SL_EXCLUDES(...) SL_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// What a function does with a mutex; without arguments, with its own object.
#define SL_ACQUIRE(...) SL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SL_ACQUIRE_SHARED(...) SL_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define SL_RELEASE(...) SL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SL_RELEASE_SHARED(...) SL_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define SL_RELEASE_GENERIC(...) SL_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
// A function that is right for a reason that clang does not see; the reason stands beside it.
#define SL_NO_THREAD_SAFETY_ANALYSIS SL_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sightline {

// std::mutex, known to the analysis.
class SL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() SL_ACQUIRE() { native_.lock(); }
  void unlock() SL_RELEASE() { native_.unlock(); }

 private:
  friend class CondVar;
  std::mutex native_;
};

// Holds a mutex for as long as it lives.
class SL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SL_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits for what other threads change under a mutex, which is free meanwhile. A condition is called
// with the mutex held and says so: [this]() SL_REQUIRES(mutex_) { return closed_; }
// Thread safety: all methods from any thread.
class CondVar {
 public:
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }

  template <class Condition>
  void wait(Mutex& mutex, Condition condition) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    native_.wait(lock.native, std::move(condition));
  }

  // What the condition is in the end: true, or false when the time is over.
  template <class Condition>
  bool wait_for(Mutex& mutex, Duration time_max, Condition condition) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    return native_.wait_for(lock.native, time_max, std::move(condition));
  }

  // Until anybody notifies, the time is over, or without either.
  void wait_for(Mutex& mutex, Duration time_max) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    native_.wait_for(lock.native, time_max);
  }

 private:
  // The caller's lock, in the form that the library wants; it stays the caller's.
  struct Borrowed {
    explicit Borrowed(std::mutex& mutex) : native(mutex, std::adopt_lock) {}
    ~Borrowed() { native.release(); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    std::unique_lock<std::mutex> native;
  };

  std::condition_variable native_;
};

// The same for waits that the request to stop ends as well; costs more.
class StopCondVar {
 public:
  void notify_all() { native_.notify_all(); }

  // What the condition is in the end: true, or false when the deadline has come or a stop is
  // requested.
  template <class Condition>
  bool wait_until(Mutex& mutex, const std::stop_token& stop, Instant deadline, Condition condition)
      SL_REQUIRES(mutex) {
    return native_.wait_until(mutex, stop, deadline, std::move(condition));
  }

 private:
  std::condition_variable_any native_;
};

}  // namespace sightline
