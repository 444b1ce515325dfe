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

// The generating endpoints.
enum class Endpoint : std::uint8_t { Chat, Completions };

// The kind of a media item.
enum class Modality : std::uint8_t { Image, Video, Audio, Other };
std::string_view name_of(Modality modality);

// One media item of a chat request, in order of appearance over all messages.
struct MediaPart {
  Modality modality = Modality::Image;
  // The content part itself. The identifier is added there, beside the payload.
  json::Value part;
  // The string with the payload's URL. Empty for forms whose bytes have no URL (embeddings, raw
  // audio). Only images with a URL can be resolved.
  std::optional<json::Value> url;
  std::size_t message = 0;   // index in messages
  std::size_t position = 0;  // index in the message's content
  // The same place for error messages: "messages[2].content[0]".
  std::string path;
};

// The parts of an OpenAI chat body that the router needs, as views of the document.
struct ChatBody {
  json::Value messages;
  std::optional<json::Value> tools;      // a non-empty array, else empty
  std::optional<json::Value> documents;  // an array, else empty
  std::optional<json::Value> template_kwargs;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  std::vector<MediaPart> media;
};

// The parts of an OpenAI completions body that the router needs. The first prompt of a batch
// decides its route.
struct CompletionBody {
  std::variant<std::string_view, std::vector<TokenId>> first_prompt;
  std::size_t prompts = 1;
};

// A parsed request. It keeps the client's bytes, with unknown fields and their order. Movable. All
// views point into document, whose text does not move.
struct ApiRequest {
  Endpoint endpoint = Endpoint::Chat;
  json::Document document;
  std::variant<ChatBody, CompletionBody> body;
  // Empty also for "", which means the base model, as vLLM 0.32 reads it.
  std::optional<std::string> model;
  std::optional<std::string> cache_salt;
  bool stream = false;
  // stream_options.include_usage of the client.
  bool include_usage = false;
  // The number of answer tokens that the client asked for, if any.
  std::optional<std::uint64_t> max_tokens;
  // A field that changes the prompt in a way that the router does not compute (vLLM 0.32 request
  // schema). The request is then routed without overlap, and this name is the reason.
  std::optional<std::string> uncounted_field;
  std::optional<std::string> reasoning_effort;
  // The engine does not read its prefix cache for this request (prompt_logprobs), so it reuses no
  // block.
  bool skips_prefix_cache = false;
  // How many answers the client asked for per prompt: n or best_of. The engine looks up its cache
  // for each.
  std::uint64_t samples = 1;

  [[nodiscard]] const ChatBody* chat() const { return std::get_if<ChatBody>(&body); }
  [[nodiscard]] const CompletionBody* completion() const {
    return std::get_if<CompletionBody>(&body);
  }
};

// The limit of JSON values in a chat body, enough for a hundred thousand messages. A kept value
// takes about 40 bytes until the prompt is made. A completions body may have one value for each
// token of a prompt.
inline constexpr std::size_t kChatValuesMax = 500'000;

// The limit of kept values in a completions body: those outside of its prompt.
inline constexpr std::size_t kCompletionValuesMax = 100'000;

// Limits of one request.
struct RequestLimits {
  std::size_t images_max = 64;  // media items of a request
  // Charged with the memory of the request besides its body. Outlives the request. Null: no charge.
  HeldBytes* memory = nullptr;
};

// Returns the body without a byte order mark of UTF-8 at its beginning. Engines skip it (Python's
// json.loads()), but JSON parsers do not.
std::string without_mark(std::string body);

// Parses a request body. Errors, blamed on the client: InvalidArgument with the field's name in
// param, TooLarge for nesting and the number of values. TooLarge and Overloaded if memory has no
// room. A type error of a field that the router does not need is left to the engine. Of members
// that the router does not search, it keeps only kind, size and text.
Result<ApiRequest> parse_request(Endpoint endpoint, std::string body, const RequestLimits& limits);

// Frees what only the prompt needs: the values within messages, tools, documents and
// template_kwargs, and a prompt's token ids. Members of the root and media parts stay. `memory`
// must be the one of parse_request().
void drop_prompt(ApiRequest& request, HeldBytes* memory);

}  // namespace sightline::openai
