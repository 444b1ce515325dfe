// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/command/invocation.h"

#include "router/cli/commands.h"

int main(int argc, char** argv) {
  return sightline::cli::run(sightline::command::begin_process(argc, argv));
}
