// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/sse.h"

#include <algorithm>

namespace sightline::openai {
namespace {

// Offset just behind the first empty line's terminator, or npos. Looking begins at `from`; to
// resume after more bytes came, begin kTailBytes before the old end.
constexpr std::size_t kTailBytes = 3;

std::size_t end_of_event(std::string_view text, std::size_t from) {
  for (auto at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    // An empty line with nothing before it is an event of its own.
    if (at == 0) return 1;
    if (at == 1 && text[0] == '\r') return 2;
    const auto next = text.substr(at + 1, 2);
    if (next.starts_with('\n')) return at + 2;
    if (next == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

Error too_large(std::size_t event_bytes_max) {
  return worker_error(ErrorCode::TooLarge,
                      "a streamed event exceeds " + std::to_string(event_bytes_max) + " bytes",
                      false);
}

// The value of a `data` line, nothing for other lines. Line without its terminator.
std::optional<std::string_view> data_value(std::string_view line) {
  constexpr std::string_view kName = "data";
  if (!line.starts_with(kName)) return std::nullopt;
  line.remove_prefix(kName.size());
  if (line.empty()) return line;
  if (line.front() != ':') return std::nullopt;
  line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

}  // namespace

void SseSplitter::feed(std::string_view bytes) { fed_ = bytes; }

Result<std::optional<SseEvent>> SseSplitter::next() {
  if (held_.empty()) {
    const auto end = end_of_event(fed_, 0);
    if (end == std::string_view::npos) {
      if (fed_.size() > event_bytes_max_) return too_large(event_bytes_max_);
      held_ = fed_;
      fed_ = {};
      return std::optional<SseEvent>();
    }
    if (end > event_bytes_max_) return too_large(event_bytes_max_);
    const auto raw = fed_.substr(0, end);
    fed_.remove_prefix(end);
    return std::optional(event_of(raw));
  }
  // Bound what is copied: an event's end lies within the limit or the event is too large.
  const auto held_bytes = held_.size();
  const auto taken = std::min(fed_.size(), event_bytes_max_ + 1 - held_bytes);
  held_.append(fed_.substr(0, taken));
  const auto end = end_of_event(held_, held_bytes - std::min(held_bytes, kTailBytes));
  if (end == std::string_view::npos || end > event_bytes_max_) {
    if (held_.size() > event_bytes_max_) return too_large(event_bytes_max_);
    fed_ = {};
    return std::optional<SseEvent>();
  }
  fed_.remove_prefix(end - held_bytes);
  held_.resize(end);
  spent_.swap(held_);
  held_.clear();
  return std::optional(event_of(spent_));
}

SseEvent SseSplitter::event_of(std::string_view raw) {
  SseEvent event{.raw = raw, .payload = {}};
  std::size_t values = 0;
  for (std::size_t begin = 0; begin < raw.size();) {
    const auto end = raw.find('\n', begin);
    auto line = raw.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto value = data_value(line);
    if (!value) continue;
    if (++values == 1) {
      event.payload = *value;
      continue;
    }
    if (values == 2) joined_ = event.payload;
    joined_.append("\n").append(*value);
    event.payload = joined_;
  }
  return event;
}

}  // namespace sightline::openai
