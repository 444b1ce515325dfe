// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "simulator/core/published_event.h"

namespace sightline::core {

// The form in which a vLLM release writes its events. Releases before 0.24 write arrays with all
// fields that they have. Later ones write maps. Releases 0.17 and 0.18 write a media key as an
// identifier alone.
struct EventFormat {
  // The N of vLLM 0.N.
  int minor_version = 32;
  // Whole digests instead of integers (VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0).
  bool byte_hashes = false;
};

// The releases whose encoding is known.
inline constexpr int kEventVersionMin = 11;
inline constexpr int kEventVersionMax = 32;

// Reads "v0.11" … "v0.32". Errors: InvalidArgument with the range.
Result<EventFormat> parse_event_format(std::string_view text);

// Returns whether this release repeats the topic in answers to replay requests (vLLM 0.25.0 and
// later).
bool replays_topic(const EventFormat& format);

// Returns whether events of this release contain the kind of a cache group (vLLM 0.22 and later).
bool tells_group_kinds(const EventFormat& format);

// One batch as MessagePack: [timestamp, events, rank]. Releases before 0.14 leave the rank out.
struct EventBatch {
  double timestamp_s = 0;  // Unix time
  std::span<const KvEvent> events;
  std::uint32_t rank = 0;
};
// Returns the bytes of a batch in this format.
Bytes encode(const EventBatch& batch, const EventFormat& format);

}  // namespace sightline::core
