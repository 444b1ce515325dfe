// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/result.h"

#include "router/prompt/chat/content.h"
#include "router/prompt/chat/content_format.h"
#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// The fields of a request that shape its prompt. The values are views of the request's document,
// which must live longer.
struct ChatTemplateInput {
  json::Value messages;  // an array of messages
  // An array. Without tools, this is absent or empty.
  std::optional<json::Value> tools;
  // An array.
  std::optional<json::Value> documents;  // an array
  // The object chat_template_kwargs.
  std::optional<json::Value> template_kwargs;
  std::optional<std::string_view> reasoning_effort;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

// The text of a prompt, and the media in it.
struct RenderedPrompt {
  std::string text;
  // The media parts of the request. Templates print their placeholders in this order. The code that
  // expands them must check their number, because a template may drop a part.
  std::vector<MediaSlot> media;
};

// The names and values of the special tokens in tokenizer_config.json. A token without a value
// ({"bos_token", nullopt}) is not defined in the template, as in transformers.
using SpecialTokens = std::vector<std::pair<std::string, std::optional<std::string>>>;

// A model's chat template, together with the steps of vLLM 0.32 and transformers 5 around it:
// - content parts in the template's format,
// - tool schemas with their fields in the engine's order,
// - parsed tool call arguments,
// - reasoning fields,
// - the role "developer",
// - continue_final_message.
//
// Thread safety: immutable after create().
class ChatTemplate {
 public:
  // Parses the template. Errors: those of jinja::Template::parse().
  static Result<ChatTemplate> create(std::string_view source, const SpecialTokens& special_tokens,
                                     MediaPlaceholders placeholders);

  // The format in which this template expects the content of messages.
  [[nodiscard]] ContentFormat format() const { return format_; }

  // Renders the prompt before tokenization. The tokenizer must recognise the special tokens in this
  // text, and must not add others. `now` is the time for templates that print the date.
  //
  // Errors, blamed on the client: those of jinja::Template::render() and chat::ToolArguments, and
  // InvalidArgument where the engine answers 400. These cases are malformed messages, a final
  // message that the template drops, and continue_final_message together with
  // add_generation_prompt.
  [[nodiscard]] Result<RenderedPrompt> render(const ChatTemplateInput& input, WallTime now) const;

 private:
  ChatTemplate(std::string source, jinja::Template parsed)
      : source_(std::move(source)), template_(std::move(parsed)) {}

  std::string source_;
  jinja::Template template_;
  ContentFormat format_ = ContentFormat::String;
  bool knows_developer_role_ = false;
  SpecialTokens special_tokens_;
  MediaPlaceholders placeholders_;
};

}  // namespace sightline::chat
