// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "router/cli/commands.h"

namespace {

// A closed pipe is an error of the write, not the end of the process; and no connection gets the
// number of a standard stream that the process was started without.
void make_streams_harmless() {
  std::signal(SIGPIPE, SIG_IGN);
  int null = 0;
  while (null >= 0 && null <= STDERR_FILENO) null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) close(null);
}

}  // namespace

int main(int argc, char** argv) {
  make_streams_harmless();
  sightline::cli::Invocation invocation;
  invocation.arguments.assign(argv + 1, argv + argc);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      invocation.environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return sightline::cli::run(invocation);
}
