// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"

// Attributes for clang's thread safety analysis. Each shared member names the mutex that guards it,
// and lint lets clang check every use (rule thread-safety). Other compilers see empty macros.
#if defined(__clang__)
#define SL_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define SL_THREAD_ATTRIBUTE(...)
#endif

// A type that can be locked, and a type that holds a lock while it exists.
#define SL_CAPABILITY(name) SL_THREAD_ATTRIBUTE(capability(name))
#define SL_SCOPED_CAPABILITY SL_THREAD_ATTRIBUTE(scoped_lockable)
// A member that code reads and writes only under this mutex. Under a shared mutex, either kind of
// lock allows reads.
#define SL_GUARDED_BY(mutex) SL_THREAD_ATTRIBUTE(guarded_by(mutex))
// Of a function, or of a lambda (after its parameters). Its callers hold these mutexes (REQUIRES),
// hold them at least shared (REQUIRES_SHARED), or do not hold them (EXCLUDES).
#define SL_REQUIRES(...) SL_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SL_REQUIRES_SHARED(...) SL_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define SL_EXCLUDES(...) SL_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// How a function changes a mutex. Without arguments it means its own object.
#define SL_ACQUIRE(...) SL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SL_ACQUIRE_SHARED(...) SL_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define SL_RELEASE(...) SL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SL_RELEASE_SHARED(...) SL_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define SL_RELEASE_GENERIC(...) SL_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
// A function whose code is correct for a reason that clang cannot see. A comment gives the
// reason.
#define SL_NO_THREAD_SAFETY_ANALYSIS SL_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sightline {

// std::mutex, with the attributes of the analysis.
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

// Holds a mutex while it exists.
class SL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SL_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits for other threads to change data under a mutex, which is free during the wait. The
// condition runs with the mutex held and declares it:
// `[this]() SL_REQUIRES(mutex_) { return closed_; }`
// Thread safety: all methods from any thread.
class CondVar {
 public:
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }

  // Waits until the condition is true.
  template <class Condition>
  void wait(Mutex& mutex, Condition condition) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    native_.wait(lock.native, std::move(condition));
  }

  // Returns the last value of the condition: false if time_max passed first.
  template <class Condition>
  bool wait_for(Mutex& mutex, Duration time_max, Condition condition) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    return native_.wait_for(lock.native, time_max, std::move(condition));
  }

  // Waits until a thread notifies, until time_max has passed, or wakes without either (a spurious
  // wakeup).
  void wait_for(Mutex& mutex, Duration time_max) SL_REQUIRES(mutex) {
    Borrowed lock(mutex.native_);
    native_.wait_for(lock.native, time_max);
  }

 private:
  // The caller's lock, in the form that the library needs. The caller still owns it: the destructor
  // releases without unlocking.
  struct Borrowed {
    explicit Borrowed(std::mutex& mutex) : native(mutex, std::adopt_lock) {}
    ~Borrowed() { native.release(); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    std::unique_lock<std::mutex> native;
  };

  std::condition_variable native_;
};

// Like CondVar, for waits that a stop request also ends. Costs more than CondVar.
class StopCondVar {
 public:
  void notify_all() { native_.notify_all(); }

  // Returns the last value of the condition: false if the deadline or a stop request came first.
  template <class Condition>
  bool wait_until(Mutex& mutex, const std::stop_token& stop, Instant deadline, Condition condition)
      SL_REQUIRES(mutex) {
    return native_.wait_until(mutex, stop, deadline, std::move(condition));
  }

 private:
  std::condition_variable_any native_;
};

}  // namespace sightline
