// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sightline::command {

// What a process was started with.
struct Invocation {
  std::vector<std::string> arguments;              // after the program's name
  std::map<std::string, std::string> environment;  // whole
};

// Of this process; first thing in main. A closed pipe is an error of the write from here on, not
// the end of the process, no connection gets the number of a standard stream that the process was
// started without, an exception that nobody catches ends it with its text, and threads of libraries
// may use OpenSSL until it has ended (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
Invocation begin_process(int argc, char** argv);

}  // namespace sightline::command
