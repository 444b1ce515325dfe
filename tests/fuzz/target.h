// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/bytes.h"

namespace sightline::fuzz {

// Each fuzz target defines this function. It feeds an input to the code under test. It stops the
// process (SL_CHECK, a sanitizer) if an invariant does not hold. It is deterministic. Its only I/O
// is to read test data once. libFuzzer calls it with generated inputs, replay.cc with kept ones.
void run(ByteView input);

}  // namespace sightline::fuzz
