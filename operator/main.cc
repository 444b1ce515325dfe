// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/command/invocation.h"

#include "operator/manager/operator_command.h"

int main(int argc, char** argv) {
  return sightline::manager::operator_command(sightline::command::begin_process(argc, argv));
}
