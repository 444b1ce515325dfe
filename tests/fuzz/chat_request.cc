// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses a client's body, adds image names as the proxy does, and reads the result as the engine
// does.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/check.h"

#include "router/openai/edits.h"
#include "router/openai/request.h"
#include "router/prompt/chat/conversation.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/naive_json.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr openai::RequestLimits kLimits{.images_max = 8};
constexpr std::size_t kDepthMax = 70;
constexpr std::string_view kOurs = "0123456789abcdef";
constexpr std::string_view kFetched = "data:image/png;base64,AA==";

bool is_resolved(const openai::MediaPart& part) {
  return part.modality == openai::Modality::Image && part.url.has_value();
}

bool loses_uuid(const openai::ApiRequest& request) {
  const auto* chat = request.chat();
  if (chat == nullptr) return false;
  return std::any_of(chat->media.begin(), chat->media.end(), [](const auto& part) {
    return !is_resolved(part) && part.part.find("uuid").has_value();
  });
}

// Edits the body as Proxy does for a request whose images have names.
std::string edited(const openai::ApiRequest& request, bool as_bytes) {
  openai::EditedBody body(request.document.text());
  const auto* chat = request.chat();
  for (std::size_t i = 0; chat != nullptr && i < chat->media.size(); ++i) {
    const auto& part = chat->media[i];
    if (is_resolved(part)) {
      openai::set_uuid(body, part, kOurs);
      if (as_bytes) openai::set_url(body, part, kFetched);
    } else {
      openai::clear_uuid(body, part);
      if (as_bytes && part.url) openai::set_url(body, part, kFetched);
    }
  }
  if (request.stream && !request.include_usage) openai::ask_for_usage(body, request);
  std::string text;
  for (const auto piece : body.pieces()) text += piece;
  SL_CHECK(text.size() == body.size());
  return text;
}

// Checks that an engine finds no identifier but the router's at any place of the messages' parts.
void check_uuids(const json::Value& value) {
  for (const json::Value member : value) {
    if (value.is(json::Kind::Object) && member.name() == "uuid") {
      SL_CHECK(member.is(json::Kind::Null) || member.string() == kOurs);
    }
  }
}

void check_parts(const openai::ApiRequest& request) {
  for (const json::Value message : request.chat()->messages) {
    const auto content = message.find("content");
    if (!content || !content->is(json::Kind::Array)) continue;
    for (const json::Value part : *content) check_uuids(part);
  }
}

// Checks that the request lists every media item that the chat template will find, so each item has
// its name.
void check_slots(const openai::ApiRequest& request) {
  const chat::MediaPlaceholders placeholders{"<i>", "<v>", "<a>"};
  const chat::MessageRules rules{chat::ContentFormat::OpenAi, placeholders};
  const auto conversation = chat::build_conversation(request.chat()->messages, rules);
  if (!conversation.ok()) return;
  for (const auto& slot : conversation->media) {
    bool listed = false;
    for (const auto& part : request.chat()->media) {
      listed |= part.message == slot.message && part.position == slot.part;
    }
    SL_CHECK(listed);
  }
}

void check_edited(const openai::ApiRequest& request, bool as_bytes) {
  const auto text = edited(request, as_bytes);
  SL_CHECK(read_naive_json(text, kDepthMax).has_value());
  const auto again = openai::parse_request(request.endpoint, text, kLimits);
  if (!again.ok()) {
    // Without its uuid, a part is what its type says. That type may lack its payload.
    SL_CHECK(loses_uuid(request));
    return;
  }
  SL_CHECK(!request.stream || again->include_usage);
  if (request.chat() == nullptr) return;
  check_parts(*again);
  const auto& before = request.chat()->media;
  std::size_t kept = 0;
  for (const auto& part : before) {
    if (!is_resolved(part)) continue;
    // A part that loses its uuid may stop being an item. A part that gets the router's uuid may
    // not.
    const auto& after = again->chat()->media;
    while (kept < after.size() && after[kept].path != part.path) ++kept;
    SL_CHECK(kept < after.size() && is_resolved(after[kept]));
    SL_CHECK(after[kept].url->string() == (as_bytes ? kFetched : part.url->string()));
    SL_CHECK(after[kept].part.find("uuid")->string() == kOurs);
  }
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const auto flags = input.byte();
  const auto endpoint = (flags & 1U) != 0 ? openai::Endpoint::Completions : openai::Endpoint::Chat;
  const std::string body(input.text());
  const auto request = openai::parse_request(endpoint, body, kLimits);
  if (!request.ok()) {
    SL_CHECK(request.error().blame == Blame::Client && !request.error().retryable);
    return;
  }
  SL_CHECK(request->document.text() == body);
  check_edited(*request, (flags & 2U) != 0);
  if (request->chat() != nullptr) check_slots(*request);
}

}  // namespace sightline::fuzz
