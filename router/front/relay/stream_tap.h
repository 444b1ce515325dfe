// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "router/front/relay/forward.h"
#include "router/openai/sse.h"
#include "router/openai/usage.h"

namespace sightline::relay {

// Splits a stream into events and reads the ones that the router needs. It removes the usage chunk
// that the router itself requested. Not thread-safe. Its arguments must live longer.
class StreamTap {
 public:
  StreamTap(const Attempt& attempt, AttemptAnswer& answer) : attempt_(attempt), answer_(answer) {}

  // Splits bytes into events, and appends the events for the client to `out`. Error: TooLarge for
  // an event above kEventBytesMax.
  Result<Done> take(std::string_view bytes, std::string& out);
  // Handles the end of the stream. Only the empty line after the last event may be missing. The
  // beginning of another event is dropped, because no client could use it.
  void take_end(std::string& out);

  // Returns the bytes of an event whose end has not arrived.
  [[nodiscard]] std::size_t held_bytes() const { return splitter_.rest().size(); }
  // Returns whether the client has a part of an event, or gets one with the bytes taken so far.
  [[nodiscard]] bool in_event() const { return splitter_.in_event(); }
  // Call it when the bytes taken so far are written to the client.
  void written() { done_sent_ = done_seen_; }
  // Returns whether the client has the whole answer. Failures of connections do not matter then.
  [[nodiscard]] bool done_sent() const { return done_sent_; }

 private:
  // Returns the usage that an event contains, or nothing.
  std::optional<openai::Usage> usage_in(const openai::SseEvent& event);

  const Attempt& attempt_;
  AttemptAnswer& answer_;
  openai::SseSplitter splitter_{
      {.event_bytes_max = kEventBytesMax, .held_bytes_max = kEventHeldBytesMax}};
  // Reads the usage of an event above kEventHeldBytesMax.
  openai::UsageReader long_event_;
  bool seen_event_ = false;
  // The event [DONE] was taken, and was written to the client.
  bool done_seen_ = false;
  bool done_sent_ = false;
};

}  // namespace sightline::relay
