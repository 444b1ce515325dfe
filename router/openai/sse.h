// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::openai {

// A server-sent event (WHATWG HTML, "Server-sent events"), or a part of a long one.
struct SseEvent {
  std::string_view raw;  // as received; of a whole event with the empty line that ends it
  // The data lines' values joined by '\n'; empty if it has none. Of a part: what lies in it of the
  // first data line, if that begins in the first part.
  std::string_view payload;
  bool begins = true;  // false: earlier parts of the event were given out
  bool ends = true;    // false: other parts follow
  [[nodiscard]] bool is_whole() const { return begins && ends; }
};

struct SseLimits {
  std::size_t event_bytes_max = 0;  // of an event, whole or in parts
  // What is kept of an event whose end has not come. Longer ones are given out in parts.
  std::size_t held_bytes_max = 0;
};

// Cuts a byte stream into server-sent events, wherever the stream is split. Lines end in LF or
// CRLF, as every engine writes them; a lone CR is no line end. An event that lies whole in the
// bytes fed is not copied, and each byte is looked at once.
//   splitter.feed(bytes);
//   for (;;) { const auto event = SL_TRY(splitter.next()); if (!event) break; … }
class SseSplitter {
 public:
  explicit SseSplitter(const SseLimits& limits) : limits_(limits) {}

  // Adds bytes, which must stay valid until next() has returned nothing. Call it only then.
  void feed(std::string_view bytes);

  // The next event or part, valid until the following call of feed() or next(); nothing when more
  // bytes are needed. Errors: TooLarge (an event above the limit, finished or not; blame Worker).
  Result<std::optional<SseEvent>> next();

  // Bytes of an unfinished event that were not given out. At the end of a sound stream it is empty.
  [[nodiscard]] std::string_view rest() const { return held_; }
  // True if a part of an event was given out whose end has not come.
  [[nodiscard]] bool in_event() const { return is_in_parts_; }

 private:
  std::optional<std::size_t> find_end();
  SseEvent event_of(std::string_view raw);
  SseEvent part_of(std::string_view raw, bool ends);

  const SseLimits limits_;
  std::string_view fed_;         // bytes of feed() not yet given out
  std::string held_;             // start of an event whose end has not come
  std::string spent_;            // the held event or part given out last
  std::string joined_;           // payload of an event with several data lines
  std::size_t event_bytes_ = 0;  // of the event so far
  std::size_t line_bytes_ = 0;   // of its unfinished line
  bool line_is_cr_ = false;      // which is a carriage return and nothing else
  bool is_in_parts_ = false;
  bool is_in_payload_ = false;  // the first data line goes on in the next part
};

}  // namespace sightline::openai
