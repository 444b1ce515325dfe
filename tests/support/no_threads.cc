// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

#include <cstdio>
#include <cstdlib>

#include <pthread.h>

// Linked into test programs that are said to start no thread, so that they are not run under
// ThreadSanitizer: it is found before that of the C library, also by std::thread.
extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  std::fputs("this test starts a thread: take SINGLE_THREAD from its CMakeLists.txt\n", stderr);
  std::abort();
}
