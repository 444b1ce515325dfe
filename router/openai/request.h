// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace sightline::openai {

enum class Endpoint : std::uint8_t { Chat, Completions };

enum class Modality : std::uint8_t { Image, Video, Audio, Other };
std::string_view name_of(Modality modality);

// One media item of a chat request, in order of appearance over all messages.
struct MediaPart {
  Modality modality = Modality::Image;
  // The content part itself, for adding the identifier beside the payload.
  json::Value part;
  // The string that holds the payload's URL; absent for forms whose bytes cannot be named by one
  // (embeddings, raw audio). Only images with a URL can be resolved.
  std::optional<json::Value> url;
  std::size_t message = 0;   // index in messages
  std::size_t position = 0;  // index in the message's content
  // The same for error messages: "messages[2].content[0]".
  std::string path;
};

// The OpenAI chat body: what the router needs of it, as views of the document.
struct ChatBody {
  json::Value messages;
  std::optional<json::Value> tools;      // a non-empty array, else absent
  std::optional<json::Value> documents;  // an array, else absent
  std::optional<json::Value> template_kwargs;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  std::vector<MediaPart> media;
};

// The OpenAI completions body. Batches are routed by their first prompt.
struct CompletionBody {
  std::variant<std::string_view, std::vector<TokenId>> first_prompt;
  std::size_t prompts = 1;
};

// A parsed request. Keeps the client's bytes: unknown fields and their order survive.
// Movable; all views point into document, whose text does not move.
struct ApiRequest {
  Endpoint endpoint = Endpoint::Chat;
  json::Document document;
  std::variant<ChatBody, CompletionBody> body;
  std::optional<std::string> model;  // absent for "" too: the base model, as vLLM 0.32 reads it
  std::optional<std::string> cache_salt;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage as the client asked
  // Number of answer tokens asked for, if the client said.
  std::optional<std::uint64_t> max_tokens;
  // Fields that change the prompt in ways the router does not compute (vLLM 0.32 request schema).
  // If any is present the request is routed without overlap and this name is the reason.
  std::optional<std::string> uncounted_field;
  std::optional<std::string> reasoning_effort;
  // The engine skips its prefix cache for this request (prompt_logprobs): no block is reused.
  bool skips_prefix_cache = false;
  // Answers asked for per prompt: n or best_of. The engine looks its cache up for each of them.
  std::uint64_t samples = 1;

  [[nodiscard]] const ChatBody* chat() const { return std::get_if<ChatBody>(&body); }
  [[nodiscard]] const CompletionBody* completion() const {
    return std::get_if<CompletionBody>(&body);
  }
};

// JSON values of a chat body: a hundred thousand messages. Those that are kept take some 40 bytes
// each until the prompt is made. Completions may have one for every token of a prompt.
inline constexpr std::size_t kChatValuesMax = 500'000;

// Values of a completions body that are kept: those outside of its prompt.
inline constexpr std::size_t kCompletionValuesMax = 100'000;

struct RequestLimits {
  std::size_t images_max = 64;  // media items of a request
  // What the request takes besides its body is charged here; outlives it. Null: nowhere.
  HeldBytes* memory = nullptr;
};

// The body without the byte order mark of UTF-8 in front of it, which engines skip (json.loads() of
// Python) and parsers of JSON do not.
std::string without_mark(std::string body);

// Parses a request body. Errors: InvalidArgument with the field's name in param, TooLarge for
// nesting and the number of values; all blamed on the client. A type error of a field that the
// router does not need is left to the engine. TooLarge, and Overloaded, where memory has no room.
// Of members of the body that the router does not look into only kind, size and text are kept.
Result<ApiRequest> parse_request(Endpoint endpoint, std::string body, const RequestLimits& limits);

// Drops what only the making of the prompt needs: what is within messages, tools, documents and
// template_kwargs, and a prompt's token ids. Members of the root and media parts stay. `memory`: as
// it was parsed with.
void drop_prompt(ApiRequest& request, HeldBytes* memory);

}  // namespace sightline::openai
