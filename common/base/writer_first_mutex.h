// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <pthread.h>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace sightline {

// A shared mutex that prefers writers: a writer enters when the readers inside have left, and later
// readers wait behind it. std::shared_mutex admits readers while any reader is inside, so a steady
// flow of readers would block a writer for ever. A thread must not lock it twice.
// Thread safety: all methods from any thread.
class SL_CAPABILITY("mutex") WriterFirstMutex {
 public:
  WriterFirstMutex() {
    pthread_rwlockattr_t attributes;
    SL_CHECK(pthread_rwlockattr_init(&attributes) == 0);
    SL_CHECK(pthread_rwlockattr_setkind_np(&attributes,
                                           PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0);
    SL_CHECK(pthread_rwlock_init(&lock_, &attributes) == 0);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~WriterFirstMutex() { pthread_rwlock_destroy(&lock_); }
  WriterFirstMutex(const WriterFirstMutex&) = delete;
  WriterFirstMutex& operator=(const WriterFirstMutex&) = delete;

  // Exclusive and shared locking. Use the classes below.
  void lock() SL_ACQUIRE() { SL_CHECK(pthread_rwlock_wrlock(&lock_) == 0); }
  void unlock() SL_RELEASE() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() SL_ACQUIRE_SHARED() { SL_CHECK(pthread_rwlock_rdlock(&lock_) == 0); }
  void unlock_shared() SL_RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

// Holds the mutex exclusively while it exists.
class SL_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(WriterFirstMutex& mutex) SL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~UniqueLock() SL_RELEASE() { mutex_.unlock(); }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

 private:
  WriterFirstMutex& mutex_;
};

// Holds the mutex shared while it exists, which blocks writers.
class SL_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(WriterFirstMutex& mutex) SL_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() SL_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  WriterFirstMutex& mutex_;
};

}  // namespace sightline
