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

// Files of a Hugging Face model directory that decide about prompts.
inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";
inline constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr std::string_view kTemplateFile = "chat_template.jinja";
inline constexpr std::string_view kTemplateJsonFile = "chat_template.json";
inline constexpr std::string_view kPreprocessorFile = "preprocessor_config.json";
inline constexpr std::string_view kProcessorFile = "processor_config.json";
// Largest of these files that is read, in bytes.
inline constexpr std::size_t kModelFileBytesMax = std::size_t{64} << 20U;

// Their contents; an absent optional is a file that does not exist.
struct ModelFiles {
  std::string config;                           // required
  std::optional<std::string> tokenizer_config;  // special tokens, chat template
  std::optional<std::string> template_jinja;
  std::optional<std::string> template_json;
  std::optional<std::string> preprocessor;  // required, or processor, for vision models
  std::optional<std::string> processor;
};

// How pictures become tokens.
enum class ModelFamily : std::uint8_t {
  TextOnly,  // no media
  Qwen2Vl,
  Qwen2_5Vl,
  Qwen3Vl,
  Unknown,  // takes media by a rule that is not known here
};

std::string_view name_of(ModelFamily family);

// Token ids that stand for media in a rendered prompt (config.json).
struct Placeholders {
  std::optional<TokenId> image;
  std::optional<TokenId> video;
  std::optional<TokenId> vision_start;
  std::optional<TokenId> vision_end;
};

// Parameters of the Qwen image rule: sides in pixels, areas in pixels.
struct ImageRule {
  std::uint32_t patch = 0;
  std::uint32_t merge = 0;
  std::uint64_t pixels_min = 0;
  std::uint64_t pixels_max = 0;
};

// A named token as chat templates see it: "bos_token" = "<s>".
struct SpecialToken {
  std::string name;
  std::string text;
};

// What the router knows about a model besides its tokenizer.
struct ModelProfile {
  ModelFamily family = ModelFamily::Unknown;
  std::string model_type;  // config.json model_type
  Placeholders placeholders;
  ImageRule image_rule;  // meaningful for the Qwen families
  // Longest prompt plus answer by the model's files; an engine may have been told otherwise.
  std::optional<std::uint32_t> tokens_max;
  // bos_token, eos_token, pad_token, unk_token, … of tokenizer_config.json, in file order.
  std::vector<SpecialToken> special_tokens;
  // Jinja sources; empty if the model has none. With tools vLLM may take another template.
  std::string chat_template;
  std::string chat_template_with_tools;
};

// Reads the files' contents. Errors: InvalidArgument naming file and field, blamed on the
// operator's input (Blame::Internal).
Result<ModelProfile> parse_model(const ModelFiles& files);

}  // namespace sightline::model
