// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/cache/wire/kv_event.h"

namespace sightline::wire {

// Facts about a family's events that no byte of an event shows.
struct EventRules {
  // If true, a store of two or more held blocks reports that they were reused. Else each of these
  // blocks is one more copy.
  bool repeats_report_reuse = false;
  // Token values from this one on denote media. An event has no other information about this media.
  // Empty if the family has no media values.
  std::optional<std::int64_t> sentinels_from;
};

// The encoding of the KV events of one engine family.
// Thread safety: any thread may call any method. An implementation keeps no state.
class EventFormat {
 public:
  virtual ~EventFormat() = default;

  // Decodes the payload of one message of an event publisher. Returns the errors of decode_batch().
  [[nodiscard]] virtual Result<EventBatch> decode(ByteView payload) const = 0;
  // Returns the same rules for the whole life of the process.
  [[nodiscard]] virtual EventRules event_rules() const = 0;
};

}  // namespace sightline::wire
