// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::openai {

// A server-sent event (WHATWG HTML, "Server-sent events").
struct SseEvent {
  std::string_view raw;      // as received, with the empty line that ends it
  std::string_view payload;  // the data lines' values joined by '\n'; empty if it has none
};

// Cuts a byte stream into server-sent events, wherever the stream is split. Lines end in LF or
// CRLF, as every engine writes them; a lone CR is no line end. An event that lies whole in the
// bytes fed is not copied.
//   splitter.feed(bytes);
//   for (;;) { const auto event = SL_TRY(splitter.next()); if (!event) break; … }
class SseSplitter {
 public:
  explicit SseSplitter(std::size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  // Adds bytes, which must stay valid until next() has returned nothing. Call it only then.
  void feed(std::string_view bytes);

  // The next complete event, valid until the following call of feed() or next(); nothing when more
  // bytes are needed. Errors: TooLarge (an event above the limit, finished or not; blame Worker).
  Result<std::optional<SseEvent>> next();

  // Bytes of an unfinished event. At the end of a sound stream it is empty.
  [[nodiscard]] std::string_view rest() const { return held_; }

 private:
  SseEvent event_of(std::string_view raw);

  std::size_t event_bytes_max_;
  std::string_view fed_;  // bytes of feed() not yet given out
  std::string held_;      // start of an event whose end has not come
  std::string spent_;     // the held event given out last
  std::string joined_;    // payload of an event with several data lines
};

}  // namespace sightline::openai
