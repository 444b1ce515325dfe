// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

namespace sightline {

// Ends the process by SIGABRT, after all lines of the log and then this message on standard error;
// without them where nobody reads. From any thread, holding any lock.
[[noreturn]] void die(std::string_view message);

[[noreturn]] void fail_check(const char* file, int line, const char* condition);

}  // namespace sightline

// Stops the process when an invariant of our own code is broken. On in every build. Never on
// external input: input errors are Error values.
#define SL_CHECK(condition)                                    \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::sightline::fail_check(__FILE__, __LINE__, #condition); \
  } while (false)
