// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/ask_limits.h"

namespace sightline::publisher {

namespace {

// A full table is searched for forgotten readers at most once in this time. Otherwise each request
// of an unknown reader would cost a walk over all readers.
constexpr Duration kSweepPause = std::chrono::seconds(1);

}  // namespace

ReaderLimits::AskVerdict ReaderLimits::admit(const Ask& ask, Instant now) {
  ReaderRecord* reader = find_or_add(ask.reader, now);
  if (reader == nullptr) return AskVerdict::TooMany;
  if (ask.number <= reader->number) return AskVerdict::Repeated;
  // The number is used up before the limits are checked. Older requests count as repeated from then
  // on, whether this one is answered or not.
  reader->number = ask.number;
  reader->heard_at = now;
  // A recorded request does not name the stream. It is charged to the share of all strangers, so it
  // uses up nothing of the reader's own share.
  Second& second = running(ask.names_stream ? reader->second : strangers_, now);
  const std::uint32_t most = ask.names_stream ? options_.asks_max : options_.strangers_asks_max;
  if (second.asks >= most || second.bytes >= options_.reply_bytes_max) return AskVerdict::TooMany;
  ++second.asks;
  return AskVerdict::Admitted;
}

ReaderLimits::ReaderRecord* ReaderLimits::find_or_add(const std::string& reader, Instant now) {
  const auto known = readers_.find(reader);
  if (known != readers_.end()) return &known->second;
  if (readers_.size() >= options_.readers_max && now >= next_sweep_) {
    next_sweep_ = now + kSweepPause;
    std::erase_if(readers_, [&](const auto& one) {
      return now - one.second.heard_at >= options_.forgotten_after;
    });
  }
  if (readers_.size() >= options_.readers_max) return nullptr;
  return &readers_[reader];
}

ReaderLimits::Second& ReaderLimits::running(Second& second, Instant now) {
  if (now - second.since >= std::chrono::seconds(1)) second = {.since = now};
  return second;
}

void ReaderLimits::charge(const std::string& reader, std::size_t bytes) {
  const auto known = readers_.find(reader);
  if (known != readers_.end()) known->second.second.bytes += bytes;
}

}  // namespace sightline::publisher
