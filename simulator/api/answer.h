// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace sightline::api {

// The bodies of a vLLM 0.32 server's answers, member by member as recorded, with
// --enable-prompt-tokens-details. Streams of /v1/completions follow its response classes.

enum class AnswerKind : std::uint8_t { Chat, Completion };

struct AnswerHead {
  AnswerKind kind = AnswerKind::Chat;
  std::string id;            // "chatcmpl-…", "cmpl-…"
  std::int64_t created = 0;  // Unix seconds
  std::string model;
  bool with_token_ids = false;            // return_token_ids
  std::vector<TokenId> prompt_token_ids;  // of the first prompt; used only with_token_ids
};

struct AnswerUsage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t cached_tokens = 0;
  std::size_t created_tokens = 0;  // whole prompt blocks newly cached; chat only
  std::size_t image_tokens = 0;    // chat only
};

struct Choice {
  std::size_t index = 0;
  std::string text;
  std::vector<TokenId> token_ids;
};

std::string whole_answer(const AnswerHead& head, std::span<const Choice> choices,
                         const AnswerUsage& usage);

// Events of a stream, each with its "data: " and empty line.
class AnswerStream {
 public:
  struct Options {
    bool include_usage = false;
    bool continuous_usage = false;
  };
  AnswerStream(AnswerHead head, const Options& options);

  // What opens a choice; nothing for completions.
  [[nodiscard]] std::string opening(std::size_t index, const AnswerUsage& usage) const;

  // A token of a choice. usage counts it already.
  struct Token {
    std::size_t index = 0;
    std::string_view text;
    TokenId id = 0;
    bool last = false;
  };
  [[nodiscard]] std::string token(const Token& token, const AnswerUsage& usage) const;

  // Everything after the last token: the usage chunk if asked for, and "[DONE]".
  [[nodiscard]] std::string closing(const AnswerUsage& usage) const;

 private:
  [[nodiscard]] std::string event(std::string_view choices, std::string_view rest) const;

  const AnswerHead head_;
  const Options options_;
  std::string prefix_;  // of every event, up to the choices
};

}  // namespace sightline::api
