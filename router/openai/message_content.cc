// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/message_content.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sightline::openai {
namespace {

using json::Kind;
using json::Value;

struct PartType {
  std::string_view type;
  Modality modality;
  std::string_view payload;   // member with the payload
  bool may_be_url = false;    // the payload, or its member "url"
  bool may_be_bytes = false;  // the same, in base64
};

// Content part types of vLLM 0.32 that carry media (chat_utils, MM_PARSER_MAP). The order is the
// one in which vLLM looks for their payloads in an untyped part.
constexpr std::array kPartTypes = {
    PartType{"image_url", Modality::Image, "image_url", true},
    PartType{"input_image", Modality::Image, "image_url", true},
    PartType{"image_pil", Modality::Other, "image_pil"},
    PartType{"image_embeds", Modality::Other, "image_embeds"},
    PartType{"audio_embeds", Modality::Other, "audio_embeds"},
    PartType{"video_embeds", Modality::Other, "video_embeds"},
    PartType{"prompt_embeds", Modality::Other, "prompt_embeds"},
    PartType{"audio_url", Modality::Audio, "audio_url", true},
    PartType{"input_audio", Modality::Audio, "input_audio"},
    PartType{"video_url", Modality::Video, "video_url", true},
    PartType{"image", Modality::Other, "image", true, true},
    PartType{"video", Modality::Video, "video", true, true},
    PartType{"audio", Modality::Audio, "audio", true, true},
};
// A part with a uuid for an unknown payload. It is listed, so the router removes the uuid. An
// engine could know more types.
constexpr PartType kNamedUnknown{"", Modality::Other, ""};

bool is_given(const std::optional<Value>& value) { return value && !value->is(Kind::Null); }

const PartType* by_payload(const Value& part) {
  const auto* known = std::find_if(kPartTypes.begin(), kPartTypes.end(), [&](const PartType& type) {
    return part.find(type.payload).has_value();
  });
  return known == kPartTypes.end() ? nullptr : known;
}

const PartType* by_name(const Value& type) {
  const auto* known = std::find_if(kPartTypes.begin(), kPartTypes.end(),
                                   [&](const PartType& it) { return type.string() == it.type; });
  return known == kPartTypes.end() ? nullptr : known;
}

// Checks all members with this name, not only the last one. Some readers do not use the last one.
bool names_a_uuid(const Value& part) {
  const auto all = part.find_all("uuid");
  return std::any_of(all.begin(), all.end(),
                     [](const Value& uuid) { return !uuid.is(Kind::Null); });
}

// Returns the media type of a part, or null for text and unknown types. The name counts only in a
// part without a uuid (vLLM 0.32). The first known payload member decides in a part with a uuid or
// without a type.
const PartType* type_of(const Value& part) {
  const auto type = part.find("type");
  const bool has_uuid = is_given(part.find("uuid"));
  const PartType* known = nullptr;
  if (has_uuid || !is_given(type)) known = by_payload(part);
  if (known == nullptr && is_given(type)) known = by_name(*type);
  return known == nullptr && names_a_uuid(part) ? &kNamedUnknown : known;
}

// Returns the URL string of a payload: the payload itself or its member "url". Empty for null, ""
// and a missing member, which mean that no bytes were given.
Result<std::optional<Value>> url_of(const Value& payload, const std::string& path) {
  std::optional<Value> url = payload;
  if (payload.is(Kind::Object)) url = payload.find("url");
  if (!url || url->is(Kind::Null)) return std::optional<Value>{};
  const auto text = url->string();
  if (!text) {
    return client_error(ErrorCode::InvalidArgument, path + ": the url must be a string", path);
  }
  return text->empty() ? std::optional<Value>{} : url;
}

struct Place {
  std::size_t message = 0;
  std::size_t position = 0;
};

Result<std::optional<MediaPart>> media_part(const Value& part, const Place& place) {
  if (!part.is(Kind::Object)) return std::optional<MediaPart>{};
  const PartType* type = type_of(part);
  if (type == nullptr) return std::optional<MediaPart>{};
  MediaPart item{.modality = type->modality, .part = part};
  item.message = place.message;
  item.position = place.position;
  item.path = "messages[" + std::to_string(place.message) + "].content[" +
              std::to_string(place.position) + "]";
  const auto payload = part.find(type->payload);
  if (payload && type->may_be_url) item.url = SL_TRY(url_of(*payload, item.path));
  const bool may_be_bytes = type->may_be_bytes && item.url;
  if (may_be_bytes && is_base64(item.url->string().value_or(""))) item.url.reset();
  if (type->modality == Modality::Image) {
    if (!item.url) {
      return client_error(ErrorCode::InvalidArgument,
                          item.path +
                              ": an image part needs its bytes (image_url.url as http(s) "
                              "or data: URL). A uuid alone is not accepted",
                          item.path);
    }
  }
  return std::optional<MediaPart>(std::move(item));
}

}  // namespace

bool is_base64(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  });
}

Error too_many_media(std::size_t images_max, std::string param) {
  return limit_error(ErrorCode::InvalidArgument, "media-images-max",
                     "a request may contain at most " + std::to_string(images_max) + " media items",
                     std::move(param));
}

Result<std::vector<MediaPart>> find_media(const Value& messages, std::size_t images_max) {
  std::vector<MediaPart> media;
  Place place;
  for (const Value message : messages) {
    const auto content = message.find("content");
    place.position = 0;
    if (content && content->is(Kind::Array)) {
      for (const Value part : *content) {
        auto item = SL_TRY(media_part(part, place));
        ++place.position;
        if (!item) continue;
        if (media.size() == images_max) return too_many_media(images_max, "messages");
        media.push_back(std::move(*item));
      }
    }
    ++place.message;
  }
  return media;
}

}  // namespace sightline::openai
