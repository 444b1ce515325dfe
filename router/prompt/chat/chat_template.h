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

// The request fields that shape the prompt; values are views of the request's document.
struct ChatTemplateInput {
  json::Value messages;                        // an array
  std::optional<json::Value> tools;            // an array; absent or empty: none
  std::optional<json::Value> documents;        // an array
  std::optional<json::Value> template_kwargs;  // an object: chat_template_kwargs
  std::optional<std::string_view> reasoning_effort;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

struct RenderedPrompt {
  std::string text;
  // The templates print placeholders in this order; whoever expands them checks the count, since a
  // template may drop a part.
  std::vector<MediaSlot> media;
};

// Names and values of tokenizer_config.json's special tokens. A null one ({"bos_token", nullopt})
// is not defined in the template, as in transformers.
using SpecialTokens = std::vector<std::pair<std::string, std::optional<std::string>>>;

// A model's chat template together with what vLLM 0.32 and transformers 5 do around it: content
// parts by format, tool schemas in the engine's field order, tool call arguments parsed, reasoning
// fields, developer role, continue_final_message.
// Thread safety: immutable after create.
class ChatTemplate {
 public:
  // Errors: those of jinja::Template::parse.
  static Result<ChatTemplate> create(std::string_view source, const SpecialTokens& special_tokens,
                                     MediaPlaceholders placeholders);

  [[nodiscard]] ContentFormat format() const { return format_; }

  // The prompt's text before tokenization; special tokens in it are to be recognised and none to be
  // added. Errors, all the client's: those of jinja::Template::render and of chat::ToolArguments,
  // and InvalidArgument where the engine answers 400 (malformed messages, continue_final_message
  // that the template drops, both continue_final_message and add_generation_prompt).
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
