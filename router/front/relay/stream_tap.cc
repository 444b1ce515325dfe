// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/relay/stream_tap.h"

#include "router/front/relay/passing.h"

namespace sightline::relay {
namespace {

// The last event of a stream.
constexpr std::string_view kLastPayload = "[DONE]";

}  // namespace

Result<Done> StreamTap::take(std::string_view bytes, std::string& out) {
  splitter_.feed(bytes);
  for (;;) {
    const auto event = SL_TRY(splitter_.next());
    if (!event) return Done{};
    // Comments keep the connection alive before the first token. They do not count as an answer.
    if (!seen_event_ && !event->payload.empty()) {
      seen_event_ = true;
      note_answer(attempt_);
      if (attempt_.on_first_token) attempt_.on_first_token();
    }
    done_seen_ |= event->is_whole() && event->payload == kLastPayload;
    const auto usage = usage_in(*event);
    if (usage) answer_.usage = usage;
    // A usage chunk with other content stays, because the client needs that content.
    if (usage && usage->alone && event->is_whole() && attempt_.strip_usage) continue;
    out += event->raw;
  }
}

void StreamTap::take_end(std::string& out) {
  if (in_event()) return;
  std::string_view line = splitter_.rest();
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with("data:") || !line.ends_with(kLastPayload)) return;
  done_seen_ = true;
  out += splitter_.rest();
}

// For an event in several parts, the usage is known after the last part.
std::optional<openai::Usage> StreamTap::usage_in(const openai::SseEvent& event) {
  if (event.is_whole()) return openai::usage_of(event.payload);
  if (event.begins) long_event_ = openai::UsageReader();
  long_event_.read(event.payload);
  return event.ends ? long_event_.usage() : std::nullopt;
}

}  // namespace sightline::relay
