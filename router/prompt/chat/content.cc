// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/content.h"

#include <algorithm>
#include <array>
#include <utility>

#include "router/prompt/template/python/text.h"

namespace sightline::chat {
namespace {

using jinja::Dict;
using jinja::Value;

enum class PartKind : std::uint8_t { Text, Thinking, Refusal, ToolReference, Media };

struct PartType {
  std::string_view name;
  PartKind kind;
  // The name of the field that holds its content.
  std::string_view field;
  MediaKind media = MediaKind::Image;
};

// MM_PARSER_MAP of vLLM 0.32, renderers/chat_utils.py.
constexpr PartType kPartTypes[] = {
    {"text", PartKind::Text, "text"},
    {"input_text", PartKind::Text, "text"},
    {"output_text", PartKind::Text, "text"},
    {"thinking", PartKind::Thinking, "thinking"},
    {"refusal", PartKind::Refusal, "refusal"},
    {"tool_reference", PartKind::ToolReference, "name"},
    {"image_url", PartKind::Media, "image_url", MediaKind::Image},
    {"input_image", PartKind::Media, "image_url", MediaKind::Image},
    {"image_pil", PartKind::Media, "image_pil", MediaKind::Image},
    {"image_embeds", PartKind::Media, "image_embeds", MediaKind::Image},
    {"audio_url", PartKind::Media, "audio_url", MediaKind::Audio},
    {"input_audio", PartKind::Media, "input_audio", MediaKind::Audio},
    {"audio_embeds", PartKind::Media, "audio_embeds", MediaKind::Audio},
    {"video_url", PartKind::Media, "video_url", MediaKind::Video},
    {"video_embeds", PartKind::Media, "video_embeds", MediaKind::Video},
};

// For a part with a uuid or without a type, the first of these fields that exists gives the type.
constexpr std::string_view kTellingFields[] = {"image_url",    "image_pil",    "image_embeds",
                                               "audio_embeds", "video_embeds", "audio_url",
                                               "input_audio",  "video_url",    "tool_reference"};

// Fields that the request schema of the engine knows. All other fields of a part reach the
// template.
constexpr std::string_view kKnownFields[] = {"type",      "text",         "prompt_cache_breakpoint",
                                             "image_url", "input_audio",  "file",
                                             "audio_url", "video_url",    "refusal",
                                             "image_pil", "uuid",         "image_embeds",
                                             "data",      "audio_embeds", "video_embeds",
                                             "thinking",  "closed",       "name"};

// Claude Code puts this line before its system texts. vLLM 0.32 drops it, because it changes with
// every request.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), "messages");
}

std::string_view name_of(MediaKind kind) {
  switch (kind) {
    case MediaKind::Image:
      return "image";
    case MediaKind::Video:
      return "video";
    case MediaKind::Audio:
      return "audio";
  }
  return "image";
}

Result<const PartType*> type_of(const json::Value& part) {
  const auto type = part.find("type");
  const auto uuid = part.find("uuid");
  const bool has_uuid = uuid && !uuid->is(json::Kind::Null);
  std::string_view name;
  if (type && type->is(json::Kind::String)) name = *type->string();
  if (!type || type->is(json::Kind::Null) || has_uuid) {
    const auto* telling = std::find_if(std::begin(kTellingFields), std::end(kTellingFields),
                                       [&](std::string_view field) { return part.find(field); });
    if (telling == std::end(kTellingFields)) {
      return invalid("Missing 'type' field in multimodal part.");
    }
    name = *telling;
  }
  const auto* found = std::find_if(std::begin(kPartTypes), std::end(kPartTypes),
                                   [&](const PartType& known) { return known.name == name; });
  if (found == std::end(kPartTypes)) {
    return invalid("Unsupported chat content part type: '" + std::string(name) + "'.");
  }
  return found;
}

// Collects the parts of one message.
class ContentReader {
 public:
  ContentReader(std::string_view role, const MessageRules& rules) : role_(role), rules_(rules) {}

  Result<Done> add(const json::Value& part, std::size_t index) {
    if (const auto text = part.string()) {
      add_text(*text, nullptr);
      return Done{};
    }
    if (!part.is(json::Kind::Object)) {
      return invalid("messages: a content part must be an object or a string");
    }
    const PartType& type = *SL_TRY(type_of(part));
    if (type.kind == PartKind::Media) {
      media_.push_back({0, index, type.media});
      if (is_list()) parts_.push_back(with_extras({{"type", name_of(type.media)}}, &part));
      return Done{};
    }
    const auto content = part.find(type.field);
    const bool is_missing = !content || content->is(json::Kind::Null);
    // vLLM ignores these two parts if they are empty, and rejects the others.
    const bool may_be_missing = type.name == "text" || type.name == "refusal";
    if (is_missing && may_be_missing) return Done{};
    if (is_missing || !content->is(json::Kind::String)) {
      return invalid("messages: '" + std::string(type.field) + "' of a '" + std::string(type.name) +
                     "' part must be a string");
    }
    if (type.kind == PartKind::ToolReference && is_list()) {
      parts_.push_back(with_extras({{"type", type.name}, {"name", *content->string()}}, nullptr));
    } else {
      add_text(*content->string(), &part);
    }
    return Done{};
  }

  Result<ChatContent> finish() {
    ChatContent content;
    content.value = is_list() ? finished_list() : SL_TRY(finished_text());
    content.media = std::move(media_);
    return content;
  }

 private:
  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

  [[nodiscard]] bool is_list() const { return rules_.format == ContentFormat::OpenAi; }

  void add_text(std::string_view text, const json::Value* part) {
    const bool is_plain_text =
        part == nullptr || (part->find("type") && part->find("type")->string() == "text");
    // Only this line is dropped. Text after it stays.
    if (role_ == "system" && is_plain_text && text.starts_with(kBillingHeader)) {
      const std::size_t line_end = text.find('\n');
      if (line_end == std::string_view::npos || line_end + 1 == text.size()) return;
      text.remove_prefix(line_end + 1);
    }
    if (is_list()) {
      parts_.push_back(with_extras({{"type", "text"}, {"text", text}}, part));
      // An empty text is a part of a list, but adds no line to a flat text.
      plain_texts_.push_back(text);
    } else if (!text.empty()) {
      plain_texts_.push_back(text);
    }
  }

  static Value with_extras(const Fields& fields, const json::Value* part) {
    std::vector<Dict::Entry> entries;
    for (const auto& [name, text] : fields) {
      entries.emplace_back(Value::text_view(name), Value::text_view(text));
    }
    if (part != nullptr) {
      for (const json::Value member : *part) {
        const bool is_known = std::find(std::begin(kKnownFields), std::end(kKnownFields),
                                        member.name()) != std::end(kKnownFields);
        if (is_known) continue;
        entries.emplace_back(Value::text_view(member.name()), Value::from_json(member));
      }
    }
    return Value::dict(Dict(std::move(entries)));
  }

  [[nodiscard]] std::string joined_texts() const {
    std::string text;
    for (std::size_t i = 0; i < plain_texts_.size(); ++i) {
      if (i > 0) text += '\n';
      text += plain_texts_[i];
    }
    return text;
  }

  // vLLM joins the texts of a tool in both formats, because templates expect a string there.
  Value finished_list() {
    if (role_ == "tool" && plain_texts_.size() == parts_.size()) return Value::text(joined_texts());
    return Value::list(std::move(parts_));
  }

  [[nodiscard]] std::string_view placeholder_of(MediaKind kind) const {
    switch (kind) {
      case MediaKind::Image:
        return rules_.placeholders.image;
      case MediaKind::Video:
        return rules_.placeholders.video;
      case MediaKind::Audio:
        return rules_.placeholders.audio;
    }
    return {};
  }

  Result<Value> finished_text() {
    // One text needs no copy.
    if (media_.empty() && plain_texts_.size() == 1) return Value::text_view(plain_texts_.front());
    std::string text = joined_texts();
    std::string prefix;
    for (const auto& [placeholder, count] : placeholder_counts()) {
      // A client may write placeholders itself. They count as placeholders of its items, in vLLM as
      // well.
      const std::size_t present = python::count_of(text, placeholder);
      if (present > count) {
        return invalid("Found more '" + std::string(placeholder) +
                       "' placeholders in input prompt than actual multimodal data items.");
      }
      for (std::size_t i = present; i < count; ++i) prefix.append(placeholder).append("\n");
    }
    // A message without text ends with its last placeholder, and not with a line break.
    if (text.empty() && !prefix.empty()) prefix.pop_back();
    return Value::text(prefix + text);
  }

  // The placeholders and their numbers, in the order in which the modalities first appear.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::size_t>> placeholder_counts() const {
    std::vector<std::pair<std::string_view, std::size_t>> counts;
    for (const MediaSlot& slot : media_) {
      const std::string_view placeholder = placeholder_of(slot.kind);
      if (placeholder.empty()) continue;
      const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) {
        return entry.first == placeholder;
      });
      if (known != counts.end()) {
        ++known->second;
      } else {
        counts.emplace_back(placeholder, 1);
      }
    }
    return counts;
  }

  std::string_view role_;
  const MessageRules& rules_;
  std::vector<Value> parts_;
  std::vector<std::string_view> plain_texts_;
  std::vector<MediaSlot> media_;
};

}  // namespace

Result<ChatContent> parse_content(const std::optional<json::Value>& content, std::string_view role,
                                  const MessageRules& rules) {
  ContentReader reader(role, rules);
  if (!content || content->is(json::Kind::Null)) return reader.finish();
  if (content->is(json::Kind::String)) {
    SL_TRY(reader.add(*content, 0));
    return reader.finish();
  }
  if (!content->is(json::Kind::Array)) {
    return invalid("messages: 'content' must be a string or an array");
  }
  std::size_t index = 0;
  for (const json::Value part : *content) SL_TRY(reader.add(part, index++));
  return reader.finish();
}

}  // namespace sightline::chat
