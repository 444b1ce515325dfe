// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"

// Recorded engine sessions of tests/data/captures (see the README there). A missing or broken file
// stops the process, because it is part of the repository.
namespace sightline::test {

// One message of the event socket.
struct CapturedMessage {
  std::string scenario;
  double received_s = 0;  // unix time
  std::uint64_t sequence = 0;
  std::vector<Bytes> frames;
};

// One HTTP exchange. n is its number in the session. It is absent for exchanges that were sent at
// the same time as others.
struct CapturedExchange {
  std::optional<std::int64_t> n;
  std::string scenario;
  std::string label;
  std::string method;
  std::string path;
  std::string request_body;
  std::int64_t status = 0;
  std::string response_body;
  double started_s = 0;                          // unix time
  std::optional<double> end_after_s;             // of the answer, since started_s
  std::vector<std::uint64_t> message_sequences;  // arrived until 0.25 s after the answer
};

struct CapturedMedia {
  std::string identifier;
  std::int64_t offset = 0;  // tokens
  std::int64_t length = 0;  // tokens
};

// The expanded prompt of a chat exchange that succeeded.
struct CapturedPrompt {
  std::optional<std::int64_t> n;
  std::string scenario;
  std::string label;
  // The name in the request: "tiny", the adapter's name, or "" if it had no model.
  std::string model;
  std::optional<std::string> cache_salt;
  std::vector<TokenId> token_ids;
  std::vector<CapturedMedia> media;
  // Only of SGLang's sessions, whose lines also have the counts of the answer:
  std::optional<std::int64_t> cached_tokens;
  std::int64_t rank = 0;         // data-parallel rank that answered
  bool has_extra_key = false;    // divides the cache, but is in no event
  bool several_samples = false;  // SGLang runs the prompt once before them
  bool input_logprobs = false;   // reuse ends where they begin
};

struct CapturedSession {
  std::string name;
  std::vector<CapturedMessage> messages;
  std::vector<CapturedMessage> messages_rank1;  // of the second data-parallel rank, if there is one
  std::vector<CapturedExchange> exchanges;
  std::vector<CapturedPrompt> prompts;  // from token_ids.jsonl, empty without it

  // Stops the process if there is no exchange of this number.
  [[nodiscard]] const CapturedExchange& exchange(std::int64_t n) const;
};

// `name` is the session's directory, for example "qwen2vl-main".
CapturedSession load_capture(std::string_view name);

// The prompts of the chat exchanges with a recorded rendering, in order.
std::vector<CapturedPrompt> prompts_from_renderings(const CapturedSession& session);

struct CapturedUsage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
};
// The usage of a whole or streamed answer, nothing if it has no usage. leaves_zero_out: an answer
// whose usage lacks cached_tokens means zero (vLLM up to 0.23).
std::optional<CapturedUsage> usage_of(const CapturedExchange& exchange,
                                      bool leaves_zero_out = false);

// The text of a file of a session, for example "replay.json".
std::string read_capture_file(std::string_view session, std::string_view file);

}  // namespace sightline::test
