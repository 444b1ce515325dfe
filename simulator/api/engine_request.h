// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/base/result.h"

#include "simulator/api/simulated_model.h"

namespace sightline::api {

// The fields of chat and completion requests that a simulated engine uses, with vLLM 0.32's checks
// and defaults. Other fields are ignored.
struct RequestFields {
  std::string model;  // as answers repeat it
  std::optional<core::Lora> lora;
  bool stream = false;
  bool include_usage = false;     // stream_options
  bool continuous_usage = false;  // stream_options.continuous_usage_stats
  bool return_token_ids = false;
  std::uint32_t samples = 1;                   // n
  std::optional<std::uint32_t> output_tokens;  // max_completion_tokens, else max_tokens
  std::optional<std::string> cache_salt;
  std::optional<std::string> session_id;
  std::optional<std::string> request_id;
  bool report_reused = false;  // vllm_xargs.kv_cache_report_mode "full"
};

// The most samples of one request.
inline constexpr std::uint32_t kSamplesMax = 64;

// Parses a JSON body, which must be an object. Errors: as vLLM answers.
Result<json::Document> parse_body(std::string body, std::string_view content_type);

// Reads the fields of a body. Errors: as vLLM answers.
Result<RequestFields> read_fields(const json::Value& body, const EngineModel& model);

// The longest sequence of the model, and the output tokens of a request that names no number.
struct OutputBounds {
  std::uint32_t max_model_len = 0;
  std::uint32_t fallback = 0;
};
// Returns the output tokens that a prompt may have: the requested number, or `fallback` limited to
// the room after the prompt. Errors: as vLLM answers for a prompt or an answer above max_model_len.
Result<std::uint32_t> output_tokens_for(std::size_t prompt_tokens, const RequestFields& fields,
                                        const OutputBounds& bounds);

// Returns the value of a required field. Errors: those of the schema check.
Result<json::Value> require_field(const json::Value& body, std::string_view name);

}  // namespace sightline::api
