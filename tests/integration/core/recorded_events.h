// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "common/base/bytes.h"

#include "simulator/core/published_event.h"

namespace sightline::core {

// A recorded payload of vLLM 0.32, read back into the values that the encoder writes. Integer
// hashes become digests that end in them. Anything that 0.32 does not write stops the process.
struct RecordedBatch {
  double timestamp_s = 0;
  bool byte_hashes = false;
  std::vector<KvEvent> events;
};
RecordedBatch read_recorded(ByteView payload);

}  // namespace sightline::core
