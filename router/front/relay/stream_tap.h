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

// Cuts a stream into events, reads what the router needs and leaves out what it asked for itself.
// Thread safety: none; what it is given outlives it.
class StreamTap {
 public:
  StreamTap(const Attempt& attempt, Answer& answer) : attempt_(attempt), answer_(answer) {}

  // Splits the bytes into events and appends those for the client to `out`. Error: TooLarge.
  Result<Done> take(std::string_view bytes, std::string& out);
  // At the end of the stream: of its last event the empty line may be missing, and only that. The
  // beginning of any other event is nothing that a client could use.
  void take_end(std::string& out);

  // Of an event whose end has not come.
  [[nodiscard]] std::size_t held_bytes() const { return splitter_.rest().size(); }
  // True if the client has a part of an event, or will have with what was taken.
  [[nodiscard]] bool in_event() const { return splitter_.in_event(); }
  // What was taken so far has been written to the client.
  void written() { done_sent_ = done_seen_; }
  // The client has the whole answer, whatever becomes of the connections.
  [[nodiscard]] bool done_sent() const { return done_sent_; }

 private:
  std::optional<openai::Usage> usage_in(const openai::SseEvent& event);

  const Attempt& attempt_;
  Answer& answer_;
  openai::SseSplitter splitter_{
      {.event_bytes_max = kEventBytesMax, .held_bytes_max = kEventHeldBytesMax}};
  openai::UsageReader long_event_;
  bool seen_event_ = false;
  bool done_seen_ = false;
  bool done_sent_ = false;
};

}  // namespace sightline::relay
