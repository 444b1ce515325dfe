// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/cache/wire/kv_event.h"

namespace sightline::wire {

// What events mean where no byte of them shows it.
struct EventRules {
  // A store of two or more held blocks reports that they were reused; else each is one more copy.
  bool repeats_report_reuse = false;
  // Values from here on stand for media of which nothing else is known; nothing: there are none.
  std::optional<std::int64_t> sentinels_from;
};

// How the engines of one family tell their events.
// Thread safety: all methods from any thread; it keeps nothing.
class EventFormat {
 public:
  virtual ~EventFormat() = default;

  // The payload of one message of an event publisher. Errors: as decode_batch().
  [[nodiscard]] virtual Result<EventBatch> decode(ByteView payload) const = 0;
  [[nodiscard]] virtual EventRules event_rules() const = 0;
};

}  // namespace sightline::wire
