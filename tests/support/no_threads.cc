// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

#include <cstdio>
#include <cstdlib>

#include <pthread.h>

// Linked into test programs that are declared to start no thread, which ThreadSanitizer does not
// run. The linker finds this function before that of the C library, also for std::thread.
extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  std::fputs("this test starts a thread: take SINGLE_THREAD from its CMakeLists.txt\n", stderr);
  std::abort();
}
