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
  // The received bytes. A whole event includes the empty line that ends it.
  std::string_view raw;
  // The values of the data lines, joined by '\n'. Empty if there are no data lines. For a part: the
  // bytes in it of the first data line, if that line begins in the first part.
  std::string_view payload;
  bool begins = true;  // false: earlier parts of the event were returned
  bool ends = true;    // false: other parts follow
  [[nodiscard]] bool is_whole() const { return begins && ends; }
};

// Limits of a splitter.
struct SseLimits {
  std::size_t event_bytes_max = 0;  // of an event, whole or in parts
  // How many bytes of an unfinished event are kept. A longer event is returned in parts.
  std::size_t held_bytes_max = 0;
};

// Splits a byte stream into server-sent events, independent of how the stream is split. Lines end
// in LF or CRLF, as every engine writes them. A lone CR is no line end. An event that lies whole in
// the fed bytes is not copied. Each byte is examined once.
//   `splitter.feed(bytes);`
//   `for (;;) { const auto event = SL_TRY(splitter.next()); if (!event) break; … }`
// Thread safety: one thread at a time.
// Thread safety: one thread at a time.
class SseSplitter {
 public:
  explicit SseSplitter(const SseLimits& limits) : limits_(limits) {}

  // Adds bytes. They must stay valid until next() has returned empty. Call feed() only after that.
  void feed(std::string_view bytes);

  // Returns the next event or part, valid until the next call of feed() or next(). Empty if more
  // bytes are needed. Error: TooLarge for an event above the limit, finished or not, blamed on the
  // worker.
  Result<std::optional<SseEvent>> next();

  // Returns the bytes of an unfinished event that were not returned. Empty at the end of a sound
  // stream.
  [[nodiscard]] std::string_view rest() const { return held_; }
  // Returns true if a part of an event was returned whose end has not arrived.
  [[nodiscard]] bool in_event() const { return is_in_parts_; }

 private:
  std::optional<std::size_t> find_end();
  SseEvent event_of(std::string_view raw);
  SseEvent part_of(std::string_view raw, bool ends);

  const SseLimits limits_;
  std::string_view fed_;         // bytes of feed() that were not returned.
  std::string held_;             // start of an event whose end has not arrived.
  std::string spent_;            // the event or part from held_ that was returned last.
  std::string joined_;           // payload of an event with several data lines.
  std::size_t event_bytes_ = 0;  // of the event so far.
  std::size_t line_bytes_ = 0;   // of its unfinished line.
  bool line_is_cr_ = false;      // that line is a carriage return and nothing else.
  bool is_in_parts_ = false;
  bool is_in_payload_ = false;  // the first data line continues in the next part
};

}  // namespace sightline::openai
