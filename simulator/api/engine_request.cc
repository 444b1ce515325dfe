// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/engine_request.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "simulator/api/api_error.h"

namespace sightline::api {
namespace {

constexpr std::size_t kSaltCharactersMax = 128;
constexpr double kTemperatureDefault = 1.0;

using MaybeValue = std::optional<json::Value>;

// Returns a member. A null counts as absent.
MaybeValue field(const json::Value& object, std::string_view name) {
  const MaybeValue value = object.find(name);
  return value && !value->is(json::Kind::Null) ? value : std::nullopt;
}

bool flag(const json::Value& object, std::string_view name) {
  const MaybeValue value = field(object, name);
  return value && value->boolean().value_or(false);
}

std::optional<std::string> text(const json::Value& object, std::string_view name) {
  const MaybeValue value = field(object, name);
  if (!value) return std::nullopt;
  const auto string = value->string();
  return string ? std::optional<std::string>(*string) : std::nullopt;
}

// Returns a value as Pydantic shows it.
std::string shown(const json::Value& value) {
  const std::string count = std::to_string(value.size());
  if (value.is(json::Kind::Array)) return "<list of " + count + " items>";
  if (value.is(json::Kind::Object)) return "<dict of " + count + " items>";
  return std::string(value.raw());
}

// Returns a number as Python prints a float.
std::string python_float(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.15g", value);
  const std::string printed = buffer.data();
  return printed.find_first_of(".en") == std::string::npos ? printed + ".0" : printed;
}

Result<Done> check_salt(const std::optional<std::string>& salt, bool present) {
  if (!present) return Done{};
  if (!salt || salt->empty()) {
    return parameter_error("Parameter 'cache_salt' must be a non-empty string if provided.",
                           "cache_salt");
  }
  // The limit is in characters, so continuation bytes of UTF-8 do not count.
  const auto characters = std::count_if(salt->begin(), salt->end(), [](char c) {
    return (static_cast<unsigned>(c) & 0xc0U) != 0x80U;
  });
  const bool allowed = salt->find_first_of(std::string_view("@/\\\0", 4)) == std::string::npos;
  if (allowed && static_cast<std::size_t>(characters) <= kSaltCharactersMax) return Done{};
  return parameter_error(
      "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', "
      "'\\\\', or NUL.",
      "cache_salt");
}

// vLLM accepts keyword arguments for reading images only from trusted clients.
Result<Done> check_media_arguments(const json::Value& body) {
  struct Row {
    std::string name;
    std::string resource;
  };
  for (const Row& row : {Row{"mm_processor_kwargs", "multimodal preprocessing"},
                         Row{"media_io_kwargs", "multimodal media loading"}}) {
    const MaybeValue value = field(body, row.name);
    if (!value || value->size() == 0) continue;
    return parameter_error(
        "Per-request " + row.name + " are disabled by default because they can change " +
            row.resource +
            " resource usage. Start the server with --trust-request-mm-kwargs only when clients "
            "are trusted.",
        row.name);
  }
  return Done{};
}

Result<std::optional<std::uint32_t>> read_output_tokens(const json::Value& body,
                                                        std::uint32_t max_model_len) {
  // The first field has priority. max_tokens is its older name.
  for (const std::string_view name : {"max_completion_tokens", "max_tokens"}) {
    const MaybeValue value = field(body, name);
    const auto asked = value ? value->integer() : std::nullopt;
    if (!asked) continue;
    const std::string number = std::to_string(*asked);
    if (*asked < 1) {
      return value_error("max_tokens must be at least 1, got " + number + ".", "max_tokens",
                         number);
    }
    if (*asked > max_model_len) {
      return value_error("max_tokens=" + number + " cannot be greater than max_model_len=" +
                             std::to_string(max_model_len) +
                             ". Please request fewer output tokens.",
                         "max_tokens", number);
    }
    return std::optional<std::uint32_t>(static_cast<std::uint32_t>(*asked));
  }
  return std::optional<std::uint32_t>();
}

Result<std::uint32_t> read_samples(const json::Value& body) {
  const MaybeValue temperature_field = field(body, "temperature");
  const double temperature = temperature_field
                                 ? temperature_field->number().value_or(kTemperatureDefault)
                                 : kTemperatureDefault;
  if (temperature < 0) {
    const std::string number = python_float(temperature);
    return value_error("temperature must be non-negative, got " + number + ".", "temperature",
                       number);
  }
  const MaybeValue n = field(body, "n");
  const std::int64_t samples = n ? n->integer().value_or(1) : 1;
  const std::string number = std::to_string(samples);
  if (samples < 1 || samples > kSamplesMax) {
    return value_error(
        "n must be between 1 and " + std::to_string(kSamplesMax) + ", got " + number + ".", "n",
        number);
  }
  // Greedy samples of one prompt are all equal, so vLLM refuses more than one.
  if (samples > 1 && temperature == 0) {
    return client_error(ErrorCode::InvalidArgument,
                        "n must be 1 when using greedy sampling, got " + number + ".");
  }
  return static_cast<std::uint32_t>(samples);
}

Result<Done> read_model(const json::Value& body, const EngineModel& model, RequestFields& fields) {
  fields.model = text(body, "model").value_or(model.name);
  if (fields.model.empty()) fields.model = model.name;
  fields.lora = model.lora(fields.model);
  if (fields.lora || fields.model == model.name) return Done{};
  std::string aliases = model.name;
  for (const std::string& adapter : model.lora_modules) aliases += ", " + adapter;
  return client_error(
      ErrorCode::NotFound,
      "The model `" + fields.model + "` does not exist. Valid aliases: " + aliases + ".", "model");
}

}  // namespace

Result<json::Document> parse_body(std::string body, std::string_view content_type) {
  if (content_type.substr(0, content_type.find(';')) != "application/json") {
    return client_error(ErrorCode::Corrupt,
                        "1 validation error:\n  Unsupported Media Type: Only 'application/json' is "
                        "allowed");
  }
  if (body.empty()) {
    return schema_error(
        {.type = "missing", .where = "body", .message = "Field required", .input = "None"});
  }
  const std::string end = "body." + std::to_string(body.size());
  auto document = json::Document::parse(std::move(body));
  if (!document) {
    return schema_error({.type = "json_invalid",
                         .where = end,
                         .message = "JSON decode error",
                         .input = "<dict of 0 items>",
                         .context = "Expecting value"});
  }
  if (document->root().is(json::Kind::Object)) return document;
  return schema_error(
      {.type = "model_attributes_type",
       .where = "body",
       .message = "Input should be a valid dictionary or object to extract fields from",
       .input = shown(document->root())});
}

Result<json::Value> require_field(const json::Value& body, std::string_view name) {
  const MaybeValue value = body.find(name);
  if (value) return *value;
  const std::string where = "body." + std::string(name);
  return schema_error(
      {.type = "missing", .where = where, .message = "Field required", .input = shown(body)});
}

Result<RequestFields> read_fields(const json::Value& body, const EngineModel& model) {
  RequestFields fields;
  fields.stream = flag(body, "stream");
  const MaybeValue stream_options = field(body, "stream_options");
  if (stream_options && !fields.stream) {
    return parameter_error("Stream options can only be defined when `stream=True`.",
                           "stream_options");
  }
  if (stream_options) {
    fields.include_usage = flag(*stream_options, "include_usage");
    fields.continuous_usage =
        fields.include_usage && flag(*stream_options, "continuous_usage_stats");
  }
  fields.cache_salt = text(body, "cache_salt");
  SL_TRY(check_salt(fields.cache_salt, field(body, "cache_salt").has_value()));
  SL_TRY(read_model(body, model, fields));
  SL_TRY(check_media_arguments(body));
  fields.output_tokens = SL_TRY(read_output_tokens(body, model.max_model_len));
  fields.samples = SL_TRY(read_samples(body));
  fields.return_token_ids = flag(body, "return_token_ids");
  fields.session_id = text(body, "session_id");
  fields.request_id = text(body, "request_id");
  const MaybeValue extra = field(body, "vllm_xargs");
  fields.report_reused = extra && text(*extra, "kv_cache_report_mode") == "full";
  return fields;
}

Result<std::uint32_t> output_tokens_for(std::size_t prompt_tokens, const RequestFields& fields,
                                        const OutputBounds& bounds) {
  const std::string limit = "This model's maximum context length is " +
                            std::to_string(bounds.max_model_len) + " tokens. ";
  if (prompt_tokens >= bounds.max_model_len) {
    // vLLM stops counting one token above the limit.
    const std::string counted =
        std::to_string(std::min<std::size_t>(prompt_tokens, std::size_t{bounds.max_model_len} + 1));
    return value_error(limit + "However, your prompt contains at least " + counted +
                           " input tokens, which exceeds this limit even without any output "
                           "tokens. Please reduce the length of the input prompt.",
                       "input_tokens", counted);
  }
  const auto room = static_cast<std::uint32_t>(bounds.max_model_len - prompt_tokens);
  if (!fields.output_tokens) return std::min(room, bounds.fallback);
  if (*fields.output_tokens <= room) return *fields.output_tokens;
  const std::string prompt = std::to_string(prompt_tokens);
  return value_error(limit + "However, you requested " + std::to_string(*fields.output_tokens) +
                         " output tokens and your prompt contains at least " + prompt +
                         " input tokens, for a total of at least " +
                         std::to_string(prompt_tokens + *fields.output_tokens) +
                         " tokens. Please reduce the length of the input prompt or the number of "
                         "requested output tokens.",
                     "input_tokens", prompt);
}

}  // namespace sightline::api
