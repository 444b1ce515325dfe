// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// An engine's event stream, cut anywhere: the same events as when it comes in one piece.
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

struct Reading {
  std::vector<std::string> raw;
  std::vector<std::string> payloads;
  std::string rest;
  bool refused = false;
  friend bool operator==(const Reading&, const Reading&) = default;
};

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

// In pieces of these sizes, one after the other and again from the first.
Reading read(std::string_view stream, ByteView sizes) {
  openai::SseSplitter splitter(kEventBytesMax);
  Reading reading;
  for (std::size_t i = 0, turn = 0; i < stream.size() && !reading.refused; ++turn) {
    const std::size_t size = sizes.empty() ? stream.size() : 1 + sizes[turn % sizes.size()];
    // A heap copy of its own: a view that outlives the piece is seen by a sanitizer.
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
  std::string joined;
  for (const auto& raw : whole.raw) {
    SL_CHECK(raw.size() <= kEventBytesMax && raw.ends_with('\n'));
    joined += raw;
  }
  joined += whole.rest;
  SL_CHECK(whole.refused ? stream.starts_with(joined) : stream == joined);
}

}  // namespace sightline::fuzz
