// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "simulator/core/kv_event.h"

namespace sightline::core {

// How a vLLM release writes its events. Releases before 0.24 write arrays with as many fields as
// they know, later ones maps; 0.17 and 0.18 write a media key as a bare identifier.
struct EventFormat {
  // The N of vLLM 0.N.
  int minor_version = 32;
  // Whole digests instead of integers (VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0).
  bool byte_hashes = false;
};

inline constexpr int kEventVersionMin = 11;
inline constexpr int kEventVersionMax = 32;

// Reads "v0.11" … "v0.32". Errors: InvalidArgument naming the range.
Result<EventFormat> parse_event_format(std::string_view text);

// True if this release repeats the topic in replay answers (vLLM 0.25.0 and later).
bool replays_topic(const EventFormat& format);

// True if this release tells of what kind a cache group is (vLLM 0.22 and later).
bool tells_group_kinds(const EventFormat& format);

// One batch as msgpack: [timestamp, events, rank]. Releases before 0.14 leave the rank out.
struct EventBatch {
  double timestamp_s = 0;  // Unix time
  std::span<const KvEvent> events;
  std::uint32_t rank = 0;
};
Bytes encode(const EventBatch& batch, const EventFormat& format);

}  // namespace sightline::core
