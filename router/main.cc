// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <unistd.h>

#include "router/cli/commands.h"

int main(int argc, char** argv) {
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
