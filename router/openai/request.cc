// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/request.h"

#include <algorithm>
#include <array>

#include "common/base/memory_ledger.h"

#include "router/openai/message_content.h"
#include "router/openai/unread_request.h"

namespace sightline::openai {
namespace {

using json::Kind;
using json::Value;

Error bad(std::string message, std::string param) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), std::move(param));
}

// ApiRequest fields of vLLM 0.32 that change the token ids or identifiers of a prompt in ways that
// router/prompt does not compute. null and {} mean there that the field is not given.
constexpr std::array kUncountedFields = {
    "chat_template",       "truncate_prompt_tokens", "truncation_side",
    "mm_processor_kwargs", "media_io_kwargs",        "add_special_tokens",
    "prompt_embeds",       "tokenization_kwargs",    "suffix",
};

bool is_given(const Value& value) {
  if (value.is(Kind::Null)) return false;
  return !(value.is(Kind::Object) && value.size() == 0);
}

Result<bool> flag(const Value& root, const char* name, bool fallback) {
  const auto value = root.find(name);
  if (!value || value->is(Kind::Null)) return fallback;
  const auto boolean = value->boolean();
  if (!boolean) return bad(std::string(name) + " must be true or false", name);
  return *boolean;
}

Result<std::optional<std::string>> text(const Value& root, const char* name) {
  const auto value = root.find(name);
  if (!value || value->is(Kind::Null)) return std::optional<std::string>{};
  const auto string = value->string();
  if (!string) return bad(std::string(name) + " must be a string", name);
  return std::optional<std::string>(*string);
}

Result<std::optional<Value>> array(const Value& root, const char* name) {
  const auto value = root.find(name);
  if (!value || value->is(Kind::Null)) return std::optional<Value>{};
  if (!value->is(Kind::Array)) return bad(std::string(name) + " must be an array", name);
  return value;
}

Result<ChatBody> parse_chat(const Value& root, const RequestLimits& limits) {
  const auto messages = SL_TRY(array(root, "messages"));
  if (!messages) return bad("messages is required", "messages");
  ChatBody chat{.messages = *messages};
  chat.tools = SL_TRY(array(root, "tools"));
  if (chat.tools && chat.tools->size() == 0) chat.tools.reset();
  chat.documents = SL_TRY(array(root, "documents"));
  chat.add_generation_prompt = SL_TRY(flag(root, "add_generation_prompt", true));
  chat.continue_final_message = SL_TRY(flag(root, "continue_final_message", false));
  if (const auto kwargs = root.find("chat_template_kwargs"); kwargs && is_given(*kwargs)) {
    if (!kwargs->is(Kind::Object)) {
      return bad("chat_template_kwargs must be an object", "chat_template_kwargs");
    }
    chat.template_kwargs = kwargs;
  }
  chat.media = SL_TRY(find_media(*messages, limits.images_max));
  return chat;
}

// Members that the router reads or edits. It only forwards the rest of a body.
json::Inside inside_of(std::string_view member) {
  constexpr std::array kKept = {"messages",       "tools",     "documents", "chat_template_kwargs",
                                "stream_options", "vllm_xargs"};
  if (member == "prompt") return json::Inside::First;
  const bool is_kept = std::find(kKept.begin(), kKept.end(), member) != kKept.end();
  return is_kept ? json::Inside::Kept : json::Inside::Dropped;
}

Result<std::vector<TokenId>> token_ids(const Value& prompt, HeldBytes* memory) {
  const std::size_t bytes = prompt.size() * sizeof(TokenId);
  // Charges the memory before it is allocated.
  if (memory != nullptr && !memory->add(bytes)) {
    return memory_error(*memory, bytes, "the prompt of the request");
  }
  auto ids = json::unsigned_integers(prompt);
  if (!ids) return bad("prompt: token ids must be non-negative 32-bit integers", "prompt");
  return std::move(*ids);
}

Result<CompletionBody> parse_completion(const Value& root, HeldBytes* memory) {
  const auto prompt = root.find("prompt");
  if (!prompt || prompt->is(Kind::Null)) return bad("prompt is required", "prompt");
  if (const auto string = prompt->string()) return CompletionBody{*string};
  if (!prompt->is(Kind::Array) || prompt->size() == 0) {
    return bad("prompt must be a string, token ids, or a non-empty array of either", "prompt");
  }
  const Value first = *prompt->begin();
  if (const auto string = first.string()) return CompletionBody{*string, prompt->size()};
  if (first.is(Kind::Array)) {
    return CompletionBody{SL_TRY(token_ids(first, memory)), prompt->size()};
  }
  return CompletionBody{SL_TRY(token_ids(*prompt, memory))};
}

Result<Done> read_options(const Value& root, ApiRequest& request) {
  request.model = SL_TRY(text(root, "model"));
  if (request.model && request.model->empty()) request.model.reset();
  request.cache_salt = SL_TRY(text(root, "cache_salt"));
  request.stream = SL_TRY(flag(root, "stream", false));
  if (const auto options = root.find("stream_options"); options && is_given(*options)) {
    if (!options->is(Kind::Object)) {
      return bad("stream_options must be an object", "stream_options");
    }
    request.include_usage = SL_TRY(flag(*options, "include_usage", false));
  }
  // The first valid field counts. An invalid value is the engine's to refuse.
  // OpenAI's newer name comes first.
  for (const char* name : {"max_completion_tokens", "max_tokens"}) {
    const auto value = root.find(name);
    if (!value || request.max_tokens) continue;
    if (const auto n = value->integer(); n && *n > 0) {
      request.max_tokens = static_cast<std::uint64_t>(*n);
    }
  }
  // The engine computes the greater number of the two.
  for (const char* name : {"n", "best_of"}) {
    const auto value = root.find(name);
    const auto n = value ? value->integer() : std::nullopt;
    if (n && *n > 0) request.samples = std::max(request.samples, static_cast<std::uint64_t>(*n));
  }
  for (const char* name : kUncountedFields) {
    const auto value = root.find(name);
    if (value && is_given(*value)) request.uncounted_field = name;
  }
  request.reasoning_effort = SL_TRY(text(root, "reasoning_effort"));
  const auto logprobs = root.find("prompt_logprobs");
  request.skips_prefix_cache = logprobs && is_given(*logprobs);
  // echo with logprobs asks for the log probabilities of the prompt, as prompt_logprobs does.
  if (const auto echo = root.find("echo"); echo && echo->boolean() == true) {
    const auto wanted = root.find("logprobs");
    request.skips_prefix_cache |= wanted && is_given(*wanted);
  }
  return Done{};
}

}  // namespace

std::string_view name_of(Modality modality) {
  switch (modality) {
    case Modality::Image:
      return "image";
    case Modality::Video:
      return "video";
    case Modality::Audio:
      return "audio";
    case Modality::Other:
      return "other";
  }
  return "other";
}

std::string without_mark(std::string body) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (body.starts_with(kMark)) body.erase(0, kMark.size());
  return body;
}

Result<ApiRequest> parse_request(Endpoint endpoint, std::string body, const RequestLimits& limits) {
  if (body.empty()) return bad("the request has no body. Send a JSON object", "");
  json::ParseLimits json_limits{.inside_of = inside_of, .memory = limits.memory};
  if (endpoint == Endpoint::Chat) json_limits.values_max = kChatValuesMax;
  if (endpoint == Endpoint::Completions) json_limits.kept_max = kCompletionValuesMax;
  json::Document document =
      SL_TRY(json::Document::parse(without_mark(std::move(body)), json_limits));
  if (!document.root().is(Kind::Object)) return bad("the request body must be a JSON object", "");
  ApiRequest request{
      .endpoint = endpoint, .document = std::move(document), .body = CompletionBody{}};
  // Views must point to the document in its final place, so they are made after the move.
  const Value root = request.document.root();
  SL_TRY(check_no_transfer(root));
  SL_TRY(read_options(root, request));
  if (endpoint == Endpoint::Chat) {
    request.body = SL_TRY(parse_chat(root, limits));
  } else {
    request.body = SL_TRY(parse_completion(root, limits.memory));
  }
  return request;
}

void drop_prompt(ApiRequest& request, HeldBytes* memory) {
  std::size_t free = 0;
  // Values that are edited when the body is sent.
  std::vector<Value> edited = request.document.root().find_all("stream_options");
  for (const Value& value : request.document.root().find_all("vllm_xargs")) edited.push_back(value);
  std::vector<Value*> kept;
  for (Value& value : edited) kept.push_back(&value);
  if (auto* const chat = std::get_if<ChatBody>(&request.body)) {
    chat->messages = request.document.root();
    chat->tools.reset();
    chat->documents.reset();
    chat->template_kwargs.reset();
    for (MediaPart& part : chat->media) {
      kept.push_back(&part.part);
      if (part.url) kept.push_back(&*part.url);
    }
  } else if (auto* const ids = std::get_if<std::vector<TokenId>>(
                 &std::get<CompletionBody>(request.body).first_prompt)) {
    free += ids->size() * sizeof(TokenId);
    *ids = std::vector<TokenId>();
  }
  free += request.document.drop_but(kept);
  if (memory != nullptr) memory->remove(free);
}

}  // namespace sightline::openai
