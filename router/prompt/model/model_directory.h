// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace sightline::model {

// The files of a Hugging Face model directory that influence prompts.
inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";
inline constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr std::string_view kTemplateFile = "chat_template.jinja";
inline constexpr std::string_view kTemplateJsonFile = "chat_template.json";
inline constexpr std::string_view kPreprocessorFile = "preprocessor_config.json";
inline constexpr std::string_view kProcessorFile = "processor_config.json";
// Largest size in bytes at which one of these files is read. A larger file is an error.
inline constexpr std::size_t kModelFileBytesMax = std::size_t{64} << 20U;

// The contents of these files. An absent optional means that the file does not exist.
struct ModelFiles {
  // Required.
  std::string config;
  // Holds the special tokens and perhaps the chat template.
  std::optional<std::string> tokenizer_config;
  std::optional<std::string> template_jinja;
  std::optional<std::string> template_json;
  // A Qwen vision model needs this file, or an "image_processor" in the next one.
  std::optional<std::string> preprocessor;
  std::optional<std::string> processor;
};

// The rules by which a model's images become tokens.
enum class ModelFamily : std::uint8_t {
  TextOnly,  // takes no media
  // The Qwen families have one rule (image_tokens.h).
  Qwen2Vl,
  Qwen2_5Vl,
  Qwen3Vl,
  Unknown,  // takes media by a rule that the router does not know
};

// "text_only", "qwen2_vl", "qwen2_5_vl", "qwen3_vl" or "unknown".
std::string_view name_of(ModelFamily family);

// Token ids that represent media in a rendered prompt, from config.json. `image` is required for
// the Qwen families. The others may be absent.
struct Placeholders {
  std::optional<TokenId> image;
  std::optional<TokenId> video;
  std::optional<TokenId> vision_start;
  std::optional<TokenId> vision_end;
};

// Parameters of the Qwen image rule.
struct ImageRule {
  // Side of a patch, in pixels.
  std::uint32_t patch = 0;
  // Patches per side that make one token.
  std::uint32_t merge = 0;
  // Area of the smallest image after resizing, in pixels.
  std::uint64_t pixels_min = 0;
  // Area of the largest image after resizing, in pixels.
  std::uint64_t pixels_max = 0;
};

// A special token as chat templates see it, for example "bos_token" = "<s>".
struct SpecialToken {
  std::string name;
  std::string text;
};

// The settings of a model that influence prompts, besides its tokenizer.
struct ModelProfile {
  ModelFamily family = ModelFamily::Unknown;
  std::string model_type;  // "model_type" of config.json
  Placeholders placeholders;
  ImageRule image_rule;  // valid for the Qwen families only
  // Longest prompt plus answer, in tokens, by the model's files. An engine may run with another
  // limit (--max-model-len). Absent if config.json gives no position limit.
  std::optional<std::uint32_t> tokens_max;
  // The tokens that tokenizer_config.json names, in this order: bos_token, eos_token, unk_token,
  // sep_token, pad_token, cls_token and mask_token.
  std::vector<SpecialToken> special_tokens;
  // Jinja sources, empty if the model has no template. For requests with tools vLLM may use another
  // template, which is the second one.
  std::string chat_template;
  std::string chat_template_with_tools;
};

// Reads the contents of the files. Does no I/O. Errors: InvalidArgument with the name of the file
// and the field. The operator's files are to blame, not the client (Blame::Internal).
Result<ModelProfile> parse_model(const ModelFiles& files);

}  // namespace sightline::model
