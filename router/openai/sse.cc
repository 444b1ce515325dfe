// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/sse.h"

#include <algorithm>

namespace sightline::openai {
namespace {

Error too_large(std::size_t event_bytes_max) {
  return worker_error(ErrorCode::TooLarge,
                      "a streamed event exceeds " + std::to_string(event_bytes_max) + " bytes",
                      false);
}

// Returns the value of a `data` line, or empty for other lines. The line has no terminator.
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

// Returns where the value of the first data line begins.
std::size_t first_value(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto value = data_value(text.substr(begin, end - begin));
    if (value) return static_cast<std::size_t>(value->data() - text.data());
    begin = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

void SseSplitter::feed(std::string_view bytes) { fed_ = bytes; }

// Returns how many of the fed bytes belong to the event, if its end is among them. An empty line
// ends an event.
std::optional<std::size_t> SseSplitter::find_end() {
  for (std::size_t begin = 0; begin < fed_.size();) {
    const std::size_t end = std::min(fed_.find('\n', begin), fed_.size());
    if (line_bytes_ == 0 && end > begin) line_is_cr_ = fed_[begin] == '\r';
    // A line may arrive in several pieces, so its length is kept between calls.
    line_bytes_ += end - begin;
    if (end == fed_.size()) return std::nullopt;
    const bool is_empty = line_bytes_ == 0 || (line_bytes_ == 1 && line_is_cr_);
    line_bytes_ = 0;
    if (is_empty) return end + 1;
    begin = end + 1;
  }
  return std::nullopt;
}

Result<std::optional<SseEvent>> SseSplitter::next() {
  const auto end = find_end();
  const std::string_view piece = fed_.substr(0, end.value_or(fed_.size()));
  fed_.remove_prefix(piece.size());
  event_bytes_ += piece.size();
  if (event_bytes_ > limits_.event_bytes_max) return too_large(limits_.event_bytes_max);
  if (end) event_bytes_ = 0;
  if (end && !is_in_parts_ && held_.empty()) return std::optional(event_of(piece));
  // A long event is returned in parts, so its memory stays below held_bytes_max.
  const bool is_long = is_in_parts_ || held_.size() + piece.size() > limits_.held_bytes_max;
  if (!end && !is_long) {
    held_.append(piece);
    return std::optional<SseEvent>();
  }
  if (is_in_parts_) {
    if (piece.empty()) return std::optional<SseEvent>();
    return std::optional(part_of(piece, end.has_value()));
  }
  held_.append(piece);
  // The returned view must stay valid until the next call.
  spent_.swap(held_);
  held_.clear();
  if (end && !is_long) return std::optional(event_of(spent_));
  return std::optional(part_of(spent_, end.has_value()));
}

SseEvent SseSplitter::part_of(std::string_view raw, bool ends) {
  SseEvent part{.raw = raw, .payload = {}, .begins = !is_in_parts_, .ends = ends};
  std::size_t begin = 0;
  if (part.begins) {
    begin = first_value(raw);
    is_in_payload_ = begin != std::string_view::npos;
  }
  if (is_in_payload_) {
    const std::string_view rest = raw.substr(begin);
    part.payload = rest.substr(0, rest.find('\n'));
    is_in_payload_ = !ends && part.payload.size() == rest.size();
  }
  is_in_parts_ = !ends;
  return part;
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
    // Most events have one data line, which needs no copy.
    if (values == 2) joined_ = event.payload;
    joined_.append("\n").append(*value);
    event.payload = joined_;
  }
  return event;
}

}  // namespace sightline::openai
