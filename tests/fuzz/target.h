// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/bytes.h"

namespace sightline::fuzz {

// What each fuzz target defines: feeds an input to the code under test and stops the process
// (SL_CHECK, a sanitizer) when an invariant does not hold. Deterministic; no I/O but reading test
// data once. Called by libFuzzer with inputs of its making, by replay.cc with kept ones.
void run(ByteView input);

}  // namespace sightline::fuzz
