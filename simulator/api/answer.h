// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace sightline::api {

// The bodies of a vLLM 0.32 server's answers with --enable-prompt-tokens-details, member by member
// as recorded. Streams of /v1/completions follow its response classes.

enum class AnswerKind : std::uint8_t { Chat, Completion };

// The members that all parts of an answer share.
struct AnswerHead {
  AnswerKind kind = AnswerKind::Chat;
  std::string id;            // "chatcmpl-…" or "cmpl-…"
  std::int64_t created = 0;  // Unix seconds
  std::string model;
  bool with_token_ids = false;  // return_token_ids
  // The ids of the first prompt. Used only with with_token_ids.
  std::vector<TokenId> prompt_token_ids;
};

// The token counts of an answer.
struct AnswerUsage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t cached_tokens = 0;
  // Tokens in whole prompt blocks that are newly cached. Only for chat.
  std::size_t created_tokens = 0;
  // Only for chat.
  std::size_t image_tokens = 0;
};

// One sample of an answer.
struct Choice {
  std::size_t index = 0;
  std::string text;
  // Used only with with_token_ids.
  std::vector<TokenId> token_ids;
};

// Returns the body of an answer without streaming.
std::string whole_answer(const AnswerHead& head, std::span<const Choice> choices,
                         const AnswerUsage& usage);

// The events of a stream. Each has its "data: " and its empty line.
class AnswerStream {
 public:
  // The fields of stream_options: a last chunk with the usage, and the usage so far in every chunk.
  struct Options {
    bool include_usage = false;
    bool continuous_usage = false;
  };
  AnswerStream(AnswerHead head, const Options& options);

  // Returns the event that begins a choice. Empty for completions.
  [[nodiscard]] std::string opening(std::size_t index, const AnswerUsage& usage) const;

  // A token of a choice. The usage counts it already.
  struct Token {
    std::size_t index = 0;
    std::string_view text;
    TokenId id = 0;
    bool last = false;
  };
  // Returns the event of a token. The last token of a choice has finish_reason "length".
  [[nodiscard]] std::string token(const Token& token, const AnswerUsage& usage) const;

  // Returns everything after the last token: the usage chunk if the client requested it, and
  // "[DONE]".
  [[nodiscard]] std::string closing(const AnswerUsage& usage) const;

 private:
  [[nodiscard]] std::string event(std::string_view choices, std::string_view rest) const;

  const AnswerHead head_;
  const Options options_;
  std::string prefix_;  // of every event, up to the choices
};

}  // namespace sightline::api
