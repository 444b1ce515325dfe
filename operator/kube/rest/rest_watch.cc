// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/rest/rest_watch.h"

#include <string>

namespace sightline::rest {

using client::Answer;
using client::Failure;
using client::Reason;
using client::WatchEvent;

namespace {

Failure failure(Reason reason, std::string message) {
  Failure made;
  made.reason = reason;
  made.message = std::move(message);
  return made;
}

Answer<WatchEvent> event_of(std::string line) {
  auto parsed = object::Value::parse(std::move(line));
  const bool is_event = parsed.ok() && (*parsed)["type"].is_string();
  if (!is_event || !(*parsed)["object"].is_object()) {
    return failure(Reason::Malformed, "a line of the watch is not an event");
  }
  return WatchEvent{WatchEvent::EventKind::Event, std::string((*parsed)["type"].text()),
                    std::move(parsed->member("object"))};
}

}  // namespace

Answer<WatchEvent> RestWatch::next(Duration time_max) {
  for (;;) {
    if (auto line = lines_.next()) return event_of(std::move(*line));
    // A server that never ends a line must not fill the memory.
    if (lines_.is_too_long()) {
      return failure(Reason::LimitExceeded, "a line of the watch is too long");
    }
    auto piece = SL_TRY(stream_->read(time_max));
    if (piece.is_end) {
      // The server ends each event with a line end, so a rest means a broken connection.
      if (lines_.has_rest()) {
        return failure(Reason::Unreachable, "the watch was cut in the middle of a line");
      }
      return WatchEvent{WatchEvent::EventKind::Ended, {}, {}};
    }
    // The caller looks for a stop and calls again.
    if (piece.bytes.empty()) return WatchEvent{};
    lines_.add(piece.bytes);
  }
}

}  // namespace sightline::rest
