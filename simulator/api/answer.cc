// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/answer.h"

#include <utility>

#include "common/base/json.h"

namespace sightline::api {
namespace {

constexpr std::string_view kFingerprint = "\"system_fingerprint\":\"vllm-0.32.0-simulate\"";

std::string text(std::size_t number) { return std::to_string(number); }

std::string id_list(std::span<const TokenId> ids) {
  std::string out = "[";
  for (const TokenId id : ids) {
    if (out.size() > 1) out += ',';
    out += text(id);
  }
  return out + "]";
}

std::string head_members(const AnswerHead& head, std::string_view object) {
  return "\"id\":" + json::to_quoted(head.id) + ",\"object\":\"" + std::string(object) +
         "\",\"created\":" + std::to_string(head.created) +
         ",\"model\":" + json::to_quoted(head.model);
}

std::string counts(const AnswerUsage& usage) {
  return "{\"prompt_tokens\":" + text(usage.prompt_tokens) +
         ",\"total_tokens\":" + text(usage.prompt_tokens + usage.completion_tokens) +
         ",\"completion_tokens\":" + text(usage.completion_tokens);
}

std::string image_counts(const AnswerUsage& usage) {
  return "{\"image\":" + text(usage.image_tokens) + "}";
}

// A whole answer has every member, with null for a count that does not apply.
std::string whole_usage(const AnswerUsage& usage, AnswerKind kind) {
  const bool chat = kind == AnswerKind::Chat;
  return counts(usage) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":" + text(usage.cached_tokens) +
         ",\"created_cache_tokens\":" + (chat ? text(usage.created_tokens) : "null") +
         ",\"multimodal_tokens\":" + (usage.image_tokens > 0 ? image_counts(usage) : "null") +
         "},\"completion_tokens_details\":null}";
}

// Streams leave members with the value null out.
std::string final_usage(const AnswerUsage& usage, AnswerKind kind) {
  std::string out =
      counts(usage) + ",\"prompt_tokens_details\":{\"cached_tokens\":" + text(usage.cached_tokens);
  if (kind == AnswerKind::Chat) out += ",\"created_cache_tokens\":" + text(usage.created_tokens);
  if (usage.image_tokens > 0) out += ",\"multimodal_tokens\":" + image_counts(usage);
  return out + "}}";
}

std::string chat_choice(const AnswerHead& head, const Choice& choice) {
  return "{\"index\":" + text(choice.index) +
         ",\"message\":{\"role\":\"assistant\",\"content\":" + json::to_quoted(choice.text) +
         ",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,"
         "\"reasoning\":null},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null,"
         "\"token_ids\":" +
         (head.with_token_ids ? id_list(choice.token_ids) : "null") + ",\"routed_experts\":null}";
}

std::string completion_choice(const AnswerHead& head, const Choice& choice) {
  return "{\"index\":" + text(choice.index) + ",\"text\":" + json::to_quoted(choice.text) +
         ",\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null,\"token_ids\":" +
         (head.with_token_ids ? id_list(choice.token_ids) : "null") +
         ",\"prompt_logprobs\":null,\"prompt_token_ids\":" +
         (head.with_token_ids ? id_list(head.prompt_token_ids) : "null") +
         ",\"routed_experts\":null}";
}

}  // namespace

std::string whole_answer(const AnswerHead& head, std::span<const Choice> choices,
                         const AnswerUsage& usage) {
  const bool chat = head.kind == AnswerKind::Chat;
  std::string list;
  for (const Choice& choice : choices) {
    if (!list.empty()) list += ',';
    list += chat ? chat_choice(head, choice) : completion_choice(head, choice);
  }
  std::string body = "{" + head_members(head, chat ? "chat.completion" : "text_completion") +
                     ",\"choices\":[" + list + "],\"service_tier\":null," +
                     std::string(kFingerprint) + ",\"usage\":" + whole_usage(usage, head.kind);
  if (chat) {
    body += ",\"prompt_logprobs\":null,\"prompt_token_ids\":";
    body += head.with_token_ids ? id_list(head.prompt_token_ids) : "null";
    body += ",\"prompt_text\":null";
  }
  return body + ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":null}";
}

AnswerStream::AnswerStream(AnswerHead head, const Options& options)
    : head_(std::move(head)), options_(options) {
  const bool chat = head_.kind == AnswerKind::Chat;
  prefix_ = "data: {" + head_members(head_, chat ? "chat.completion.chunk" : "text_completion") +
            ",\"choices\":[";
}

std::string AnswerStream::event(std::string_view choices, std::string_view rest) const {
  std::string out;
  out.reserve(prefix_.size() + choices.size() + rest.size() + 8);
  out.append(prefix_).append(choices).append("]").append(rest).append("}\n\n");
  return out;
}

std::string AnswerStream::opening(std::size_t index, const AnswerUsage& usage) const {
  // A chat stream begins with a chunk that has the role. A completion stream begins with a token.
  if (head_.kind == AnswerKind::Completion) return {};
  const std::string choice = "{\"index\":" + text(index) +
                             ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                             "\"logprobs\":null,\"finish_reason\":null}";
  std::string rest;
  if (options_.continuous_usage) {
    rest = ",\"usage\":" + counts(usage) + ",\"completion_tokens_details\":null}";
  }
  rest += ",\"prompt_token_ids\":";
  rest += head_.with_token_ids ? id_list(head_.prompt_token_ids) : "null";
  return event(choice, rest + ",\"prompt_text\":null");
}

std::string AnswerStream::token(const Token& token, const AnswerUsage& usage) const {
  const bool chat = head_.kind == AnswerKind::Chat;
  std::string choice = "{\"index\":" + text(token.index);
  choice += chat ? ",\"delta\":{\"content\":" : ",\"text\":";
  json::append_quoted(choice, token.text);
  choice +=
      chat ? "},\"logprobs\":null,\"finish_reason\":" : ",\"logprobs\":null,\"finish_reason\":";
  choice += token.last ? "\"length\"" : "null";
  if (token.last || !chat) choice += ",\"stop_reason\":null";
  if (!chat) choice += ",\"prompt_token_ids\":null";
  choice += ",\"token_ids\":";
  choice += head_.with_token_ids ? id_list(std::span(&token.id, 1)) : "null";
  choice += '}';
  std::string rest;
  if (options_.continuous_usage) {
    rest = ",\"usage\":" + counts(usage) + ",\"completion_tokens_details\":null}";
  }
  // With include_usage the usage chunk has the fingerprint instead.
  if (chat && token.last && !options_.include_usage) rest += "," + std::string(kFingerprint);
  return event(choice, rest);
}

std::string AnswerStream::closing(const AnswerUsage& usage) const {
  std::string out;
  if (options_.include_usage) {
    out =
        event("", ",\"usage\":" + final_usage(usage, head_.kind) + "," + std::string(kFingerprint));
  }
  return out + "data: [DONE]\n\n";
}

}  // namespace sightline::api
