// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/command/invocation.h"

#include <csignal>
#include <exception>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include "common/base/check.h"

namespace sightline::command {
namespace {

// Makes a closed pipe an error of write(). Opens missing standard streams, because a later socket
// would get their numbers, and text for standard error would go to a peer.
void make_streams_harmless() {
  std::signal(SIGPIPE, SIG_IGN);
  int null = 0;
  while (null >= 0 && null <= STDERR_FILENO) null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) close(null);
}

// Threads of libraries outlive main(). OpenSSL's exit handler would free locks that they still use.
void keep_locks_at_exit() { SL_CHECK(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1); }

// Replaces the library's last message, which waits for a reader.
[[noreturn]] void end_unexpectedly() {
  std::string why = "no exception";
  if (const std::exception_ptr escaped = std::current_exception()) {
    try {
      std::rethrow_exception(escaped);
    } catch (const std::exception& exception) {
      why = exception.what();
    } catch (...) {
      why = "unknown exception";
    }
  }
  die("terminate: " + why);
}

}  // namespace

Invocation begin_process(int argc, char** argv) {
  make_streams_harmless();
  keep_locks_at_exit();
  std::set_terminate(end_unexpectedly);
  Invocation invocation;
  invocation.arguments.assign(argv + 1, argv + argc);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    invocation.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return invocation;
}

}  // namespace sightline::command
