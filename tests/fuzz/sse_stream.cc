// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Splits an engine's event stream at any place. The events must be the same as from one piece.
#include <string>
#include <vector>

#include "common/base/check.h"

#include "router/openai/sse.h"
#include "router/openai/usage.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr std::size_t kEventBytesMax = 256;
// Longer events arrive in parts.
constexpr std::size_t kHeldBytesMax = 32;

struct Reading {
  std::vector<std::string> raw;
  std::vector<std::string> payloads;
  std::string rest;
  bool refused = false;
  friend bool operator==(const Reading&, const Reading&) = default;
};

// Checks that the usage of an event is the same from its parts and from one piece.
void check_usage(const std::string& payload, const openai::UsageReader& reader) {
  const auto whole = openai::usage_of(payload);
  const auto parts = reader.usage();
  SL_CHECK(!whole || parts);
  SL_CHECK(!whole ||
           (whole->prompt_tokens == parts->prompt_tokens && whole->alone == parts->alone));
}

// Joins the parts of a splitter that returns parts.
std::string joined_parts(std::string_view stream, ByteView sizes) {
  openai::SseSplitter splitter(
      {.event_bytes_max = stream.size() + 1, .held_bytes_max = kHeldBytesMax});
  std::string joined;
  std::string payload;
  openai::UsageReader reader;
  for (std::size_t i = 0, turn = 0; i < stream.size(); ++turn) {
    const std::size_t size = sizes.empty() ? stream.size() : 1 + sizes[turn % sizes.size()];
    const std::string piece(stream.substr(i, size));
    i += piece.size();
    splitter.feed(piece);
    for (auto event = splitter.next(); event->has_value(); event = splitter.next()) {
      const openai::SseEvent& part = **event;
      joined += part.raw;
      if (part.begins) reader = {};
      if (part.begins) payload.clear();
      reader.read(part.payload);
      payload += part.payload;
      if (part.ends) check_usage(payload, reader);
      SL_CHECK(splitter.in_event() == !part.ends);
    }
    SL_CHECK(splitter.rest().size() <= kHeldBytesMax);
  }
  joined += splitter.rest();
  return joined;
}

void drain(openai::SseSplitter& splitter, Reading& reading) {
  for (;;) {
    const auto event = splitter.next();
    if (!event.ok()) {
      reading.refused = true;
      return;
    }
    if (!event->has_value()) return;
    reading.raw.emplace_back((*event)->raw);
    reading.payloads.emplace_back((*event)->payload);
    openai::usage_of((*event)->payload);
  }
}

// Reads the stream in pieces of these sizes, which repeat.
Reading read(std::string_view stream, ByteView sizes) {
  openai::SseSplitter splitter(
      {.event_bytes_max = kEventBytesMax, .held_bytes_max = kEventBytesMax});
  Reading reading;
  for (std::size_t i = 0, turn = 0; i < stream.size() && !reading.refused; ++turn) {
    const std::size_t size = sizes.empty() ? stream.size() : 1 + sizes[turn % sizes.size()];
    // A copy on the heap lets a sanitizer detect a view that outlives the piece.
    const std::string piece(stream.substr(i, size));
    i += piece.size();
    splitter.feed(piece);
    drain(splitter, reading);
  }
  if (!reading.refused) reading.rest = splitter.rest();
  return reading;
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const auto sizes = input.take(4);
  const auto stream = input.text();
  const auto whole = read(stream, {});
  const auto pieces = read(stream, sizes);
  SL_CHECK(whole == pieces);
  SL_CHECK(joined_parts(stream, sizes) == stream);
  std::string joined;
  for (const auto& raw : whole.raw) {
    SL_CHECK(raw.size() <= kEventBytesMax && raw.ends_with('\n'));
    joined += raw;
  }
  joined += whole.rest;
  SL_CHECK(whole.refused ? stream.starts_with(joined) : stream == joined);
}

}  // namespace sightline::fuzz
