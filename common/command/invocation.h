// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sightline::command {

// What a process was started with.
struct Invocation {
  // The arguments after the program's name.
  std::vector<std::string> arguments;
  // The whole environment.
  std::map<std::string, std::string> environment;
};

// Prepares this process and returns its Invocation. Call it as the first statement of main. It
// makes sure that from here on:
// - a closed pipe is an error of the write and does not end the process
// - no connection gets the number of a standard stream that the process was started without
// - an uncaught exception ends the process with its text
// - threads of libraries may use OpenSSL until the process ends (OPENSSL_init_crypto(3),
//   OPENSSL_INIT_NO_ATEXIT)
Invocation begin_process(int argc, char** argv);

}  // namespace sightline::command
