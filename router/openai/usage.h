// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sightline::openai {

// What the engine says a request cost (OpenAI usage object with vLLM 0.32's details).
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  // prompt_tokens_details.cached_tokens; absent unless the engine runs with
  // --enable-prompt-tokens-details.
  std::optional<std::uint64_t> cached_tokens;
  // True if the object stands in a chunk without choices: the extra chunk at the end of a stream.
  bool alone = false;
};

// The usage of an answer body or of one stream chunk; nothing if there is none. Cheap when the
// text has no usage object: no parsing happens. The text is what an engine sent, so anything
// malformed is nothing.
std::optional<Usage> usage_of(std::string_view json_text);

}  // namespace sightline::openai
