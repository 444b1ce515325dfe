// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

namespace sightline {

// Ends the process with SIGABRT. First it writes all waiting log lines and then this message to
// standard error. It waits kLastLinesTime (line_writer.h) for each and then drops them, so an
// unread pipe cannot keep a broken process alive. From any thread, with any lock held.
[[noreturn]] void die(std::string_view message);

// The end of SL_CHECK: die() with the place and the text of the condition.
[[noreturn]] void fail_check(const char* file, int line, const char* condition);

}  // namespace sightline

// Ends the process when an invariant of our own code is broken. Active in every build. Never use it
// for input from outside: wrong input gives an Error.
#define SL_CHECK(condition)                                    \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::sightline::fail_check(__FILE__, __LINE__, #condition); \
  } while (false)
