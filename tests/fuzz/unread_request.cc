// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Reads a body whose prompt the router does not parse. In the edited body, a client's word names
// nothing that an engine fetches or finds by name.
#include "router/openai/unread_request.h"

#include <array>
#include <string>
#include <utility>

#include "common/base/check.h"

#include "router/openai/edits.h"
#include "tests/fuzz/naive_json.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr std::array kFixed = {openai::FixedMember{"mode", "\"new\""},
                               openai::FixedMember{"rank", "null"}};
constexpr openai::UnreadRules kRules{.fixed = kFixed, .media_max = 8};
constexpr std::size_t kDepthMax = 70;
constexpr std::string_view kFetched = "data:image/png;base64,AA==";

// Edits the body as Proxy does for a request whose media were fetched.
std::string edited(const openai::UnreadRequest& request) {
  openai::EditedBody body(request.text());
  for (const auto& fix : request.fixes) {
    body.replace(fix.old.begin_offset(), fix.old.end_offset(), std::string(fix.value));
  }
  for (const auto& part : request.media) openai::set_url(body, part, kFetched);
  std::string text;
  for (const auto piece : body.pieces()) text += piece;
  SL_CHECK(text.size() == body.size());
  return text;
}

}  // namespace

void run(ByteView input) {
  const auto request = openai::read_unread(std::string(text_of(input)), "", kRules);
  if (!request.ok() || !request->document) return;
  const std::string text = edited(*request);
  SL_CHECK(read_naive_json(text, kDepthMax).has_value());
  const auto again = openai::read_unread(text, "", kRules);
  SL_CHECK(again.ok());
  SL_CHECK(again->media.size() == request->media.size());
  for (const auto& part : again->media) SL_CHECK(part.url->string() == kFetched);
  SL_CHECK(again->fixes.size() == request->fixes.size());
  for (const auto& fix : again->fixes) SL_CHECK(fix.old.raw() == fix.value);
  SL_CHECK(openai::check_no_transfer(again->document->root()).ok());
}

}  // namespace sightline::fuzz
