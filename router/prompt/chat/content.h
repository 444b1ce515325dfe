// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

#include "router/prompt/chat/content_format.h"
#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// The kinds of media parts.
enum class MediaKind : std::uint8_t { Image, Video, Audio };

// A media part of the request. A list of them is in the order of appearance over all messages.
struct MediaSlot {
  // Index of the message in `messages`.
  std::size_t message = 0;
  // Index of the part in the message's content.
  std::size_t part = 0;
  MediaKind kind = MediaKind::Image;
};

// The text that vLLM inserts for one item where the template takes flat text
// (ContentFormat::String). It is empty if the model does not take this modality.
struct MediaPlaceholders {
  std::string image;
  std::string video;
  std::string audio;
};

// The content of one message for the template.
struct ChatContent {
  // A text or a list of parts, depending on the format.
  jinja::Value value;
  // Their `message` is 0. The caller sets it.
  std::vector<MediaSlot> media;
};

// The rules of one template. `placeholders` must live longer.
struct MessageRules {
  ContentFormat format = ContentFormat::String;
  const MediaPlaceholders& placeholders;
};

// Converts a message's content to the value that vLLM 0.32 gives to the template. The value is a
// view of the document, which must live longer.
// - OpenAi: a list. Media parts are {"type": "image"}, texts are {"type": "text", "text": …}. Each
//   has the fields of the client's part that the engine does not know.
// - String: the texts, joined by line breaks. Placeholders that the text does not contain are put
//   before it.
//
// A tool's texts are joined in both formats. Errors: InvalidArgument where the engine answers 400.
Result<ChatContent> parse_content(const std::optional<json::Value>& content, std::string_view role,
                                  const MessageRules& rules);

}  // namespace sightline::chat
