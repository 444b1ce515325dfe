// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/sse.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::openai {
namespace {

constexpr std::size_t kLimit = 1024;

struct Cut {
  std::vector<std::string> raw;
  std::vector<std::string> payloads;
  std::string rest;
  bool failed = false;
};

// Feeds the pieces, each from memory freed before the next.
Cut cut(const std::vector<std::string>& pieces, std::size_t event_bytes_max = kLimit) {
  Cut result;
  SseSplitter splitter({.event_bytes_max = event_bytes_max, .held_bytes_max = event_bytes_max});
  for (const auto& piece : pieces) {
    std::string bytes = piece;
    splitter.feed(bytes);
    for (;;) {
      const auto event = splitter.next();
      if (!event) {
        EXPECT_EQ(event.error().code, ErrorCode::TooLarge);
        result.failed = true;
        return result;
      }
      if (!*event) break;
      result.raw.emplace_back((*event)->raw);
      result.payloads.emplace_back((*event)->payload);
    }
    bytes.assign(bytes.size(), '#');
  }
  result.rest = splitter.rest();
  return result;
}

// Line by line, as the standard describes it.
std::vector<std::string> naive_events(std::string_view text) {
  std::vector<std::string> events;
  std::string event;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    const auto line = text.substr(begin, end + 1 - begin);
    event += line;
    if (line == "\n" || line == "\r\n") {
      events.push_back(event);
      event.clear();
    }
    begin = end + 1;
  }
  return events;
}

const std::string kStream =
    "data: {\"a\":1}\n\n"
    "data: {\"b\":2}\r\n\r\n"
    "event: delta\ndata:{\"c\":3}\nid: 7\n\n"
    ": ping\n\n"
    "data: one\ndata: two\ndata\n\n"
    "data: mixed\n\r\n"
    "\n"
    "\r\n"
    "data: r\rr\n\n"
    "data: [DONE]\n\n";

TEST(SseSplitter, GivesEveryEventWithItsTerminatorAndItsPayload) {
  const auto result = cut({kStream});
  EXPECT_EQ(result.raw, naive_events(kStream));
  const std::vector<std::string> want{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "",     "one\ntwo\n",
                                      "mixed",     "",          "",          "r\rr", "[DONE]"};
  EXPECT_EQ(result.payloads, want);
  EXPECT_EQ(result.rest, "");
}

TEST(SseSplitter, GivesTheSameEventsForAnySplit) {
  const auto whole = cut({kStream});
  for (std::size_t i = 0; i <= kStream.size(); ++i) {
    for (std::size_t j = i; j <= kStream.size(); ++j) {
      const auto split = cut({kStream.substr(0, i), kStream.substr(i, j - i), kStream.substr(j)});
      ASSERT_EQ(split.raw, whole.raw) << i << " " << j;
      ASSERT_EQ(split.payloads, whole.payloads) << i << " " << j;
    }
  }
}

TEST(SseSplitter, GivesTheSameEventsByteByByte) {
  std::vector<std::string> bytes;
  for (const char byte : kStream) bytes.emplace_back(1, byte);
  EXPECT_EQ(cut(bytes).raw, naive_events(kStream));
}

TEST(SseSplitter, DoesNotCopyAWholeEvent) {
  const std::string bytes = "data: x\n\ndata: y\n\n";
  SseSplitter splitter({.event_bytes_max = kLimit, .held_bytes_max = kLimit});
  splitter.feed(bytes);
  const auto first = splitter.next();
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_EQ((*first)->raw.data(), bytes.data());
  const auto second = splitter.next();
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->payload.data(), bytes.data() + bytes.find('y'));
}

TEST(SseSplitter, KeepsAnUnfinishedEventAsRest) {
  EXPECT_EQ(cut({"data: a\n\ndata: unfin", "ished\n"}).rest, "data: unfinished\n");
}

TEST(SseSplitter, RefusesAnEventAboveTheLimitFinishedOrNot) {
  const std::string fits = "data: 4567\n\n";  // 12 bytes
  const std::string above = "data: 45678\n\n";
  EXPECT_FALSE(cut({fits + fits}, 12).failed);
  EXPECT_TRUE(cut({fits + above}, 12).failed);
  EXPECT_TRUE(cut({"data: 456789abcdef"}, 12).failed);
  for (std::size_t i = 1; i < above.size(); ++i) {
    EXPECT_TRUE(cut({above.substr(0, i), above.substr(i)}, 12).failed) << i;
  }
  for (std::size_t i = 1; i < fits.size(); ++i) {
    EXPECT_FALSE(cut({fits.substr(0, i), fits.substr(i) + fits}, 12).failed) << i;
  }
}

// Events joined from their parts, and the payloads of events that came in parts.
struct Parts {
  std::vector<std::string> raw;
  std::vector<std::string> payloads;
  std::size_t longest_part = 0;
  bool failed = false;
};

Parts take_parts(std::string_view stream, std::size_t piece_bytes, const SseLimits& limits) {
  Parts parts;
  SseSplitter splitter(limits);
  for (std::size_t at = 0; at < stream.size(); at += piece_bytes) {
    std::string bytes(stream.substr(at, piece_bytes));
    splitter.feed(bytes);
    for (;;) {
      const auto event = splitter.next();
      parts.failed = !event.ok();
      if (parts.failed || !*event) break;
      const SseEvent& part = **event;
      EXPECT_EQ(splitter.in_event(), !part.ends);
      if (part.begins) parts.raw.emplace_back();
      if (part.begins) parts.payloads.emplace_back();
      parts.raw.back() += part.raw;
      parts.payloads.back() += part.payload;
      if (!part.is_whole()) parts.longest_part = std::max(parts.longest_part, part.raw.size());
    }
    if (parts.failed) break;
    bytes.assign(bytes.size(), '#');
  }
  EXPECT_TRUE(parts.failed || splitter.rest().empty());
  return parts;
}

TEST(SseSplitter, GivesALongEventInPartsWithinItsLimit) {
  const std::string value(700, 'x');
  const std::string long_event = ": note\nevent: e\ndata: {" + value + "}\r\nid: 7\n\r\n";
  const std::string stream = "data: before\n\n" + long_event + "data: after\n\n" + kStream;
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    const Parts parts = take_parts(stream, piece, {.event_bytes_max = 1024, .held_bytes_max = 40});
    ASSERT_EQ(parts.raw, naive_events(stream)) << piece;
    ASSERT_FALSE(parts.failed);
    ASSERT_LE(parts.longest_part, 40 + piece);
    // A carriage return is white space for the reader of a payload.
    ASSERT_TRUE(parts.payloads[1].starts_with("{" + value + "}")) << piece;
    ASSERT_LE(parts.payloads[1].size(), value.size() + 3) << piece;
    ASSERT_EQ(parts.payloads[0], "before");
    ASSERT_EQ(parts.payloads[2], "after");
  }
}

TEST(SseSplitter, RefusesALongEventAboveTheLimitInParts) {
  const std::string stream = "data: a\n\ndata: " + std::string(2000, 'x') + "\n\n";
  const Parts parts = take_parts(stream, 64, {.event_bytes_max = 1024, .held_bytes_max = 40});
  EXPECT_TRUE(parts.failed);
  ASSERT_EQ(parts.raw.size(), 2U);
  EXPECT_LE(parts.raw[1].size(), 1024U);
}

}  // namespace
}  // namespace sightline::openai
