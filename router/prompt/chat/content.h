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

enum class MediaKind : std::uint8_t { Image, Video, Audio };

// A media part of the request, in order of appearance over all messages.
struct MediaSlot {
  std::size_t message = 0;  // index in messages
  std::size_t part = 0;     // index in the message's content
  MediaKind kind = MediaKind::Image;
};

// What vLLM puts into the text for one item where the template takes flat text (ContentFormat
// String). Empty: the model has no such modality.
struct MediaPlaceholders {
  std::string image;
  std::string video;
  std::string audio;
};

struct ChatContent {
  jinja::Value value;            // a text or a list of parts, as the format says
  std::vector<MediaSlot> media;  // message is left 0
};

struct MessageRules {
  ContentFormat format = ContentFormat::String;
  const MediaPlaceholders& placeholders;
};

// A message's content as vLLM 0.32 hands it to the template. OpenAi: a list in which media parts
// are {"type": "image"} and texts {"type": "text", "text": …}, each with the client's unknown
// fields. String: texts joined by line breaks, placeholders that the text does not hold already in
// front. Values are views of the document. Errors: InvalidArgument where the engine answers 400.
Result<ChatContent> parse_content(const std::optional<json::Value>& content, std::string_view role,
                                  const MessageRules& rules);

}  // namespace sightline::chat
