// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses any JSON text, and compares with the obvious reader.
#include <string>

#include "common/base/check.h"
#include "common/base/json.h"

#include "tests/fuzz/naive_json.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr std::size_t kDepthMax = 64;

void check_value(const json::Value& value, std::string_view text) {
  SL_CHECK(value.begin_offset() < value.end_offset() && value.end_offset() <= text.size());
  SL_CHECK(read_naive_json(value.raw(), kDepthMax + 1).has_value());
  std::size_t members = 0;
  std::size_t at = value.begin_offset();
  for (const json::Value member : value) {
    SL_CHECK(member.begin_offset() > at && member.end_offset() < value.end_offset());
    at = member.end_offset();
    ++members;
    check_value(member, text);
  }
  SL_CHECK(members == value.size());
  const auto string = value.string();
  if (!string) return;
  SL_CHECK(is_utf8(*string));
  const auto again = json::Document::parse("[" + json::to_quoted(*string) + "]");
  SL_CHECK(again.ok() && (*again->root().begin()).string() == string);
}

}  // namespace

void run(ByteView input) {
  const std::string text(text_of(input));
  const auto document = json::Document::parse(text, {.depth_max = kDepthMax});
  const auto naive = read_naive_json(text, kDepthMax + 1);
  if (document.ok()) {
    SL_CHECK(naive.has_value() && naive->container && !naive->lone_surrogate);
    check_value(document->root(), text);
    return;
  }
  SL_CHECK(document.error().blame == Blame::Client);
  SL_CHECK(!naive || !naive->container || naive->depth > kDepthMax || naive->long_number ||
           naive->lone_surrogate);
}

}  // namespace sightline::fuzz
