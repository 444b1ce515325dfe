// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/model_directory.h"

#include <array>
#include <limits>

#include "common/base/json.h"

namespace sightline::model {
namespace {

// Limits of the values in a preprocessor configuration, far above those of any model. The sides are
// in pixels.
constexpr std::uint32_t kPatchMax = 1024;
constexpr std::uint32_t kMergeMax = 64;
constexpr std::uint64_t kPixelsLimitMax = std::uint64_t{1} << 40U;

// An error that blames the operator's file.
Error wrong(std::string_view file, std::string_view what) {
  return Error{.code = ErrorCode::InvalidArgument,
               .blame = Blame::Internal,
               .message = std::string(file) + ": " + std::string(what)};
}

Result<json::Document> parse_object(std::string_view file, const std::string& text) {
  auto document = json::Document::parse(text);
  if (!document.ok()) return wrong(file, document.error().message);
  if (!document->root().is(json::Kind::Object)) return wrong(file, "must contain a JSON object");
  return document;
}

// Returns a member. A null counts as absent.
std::optional<json::Value> member(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  return value && !value->is(json::Kind::Null) ? value : std::nullopt;
}

// A JSON object and the name of its file, for errors.
struct Section {
  std::string_view file;
  json::Value object;
};

// The name of an integer field and the values that it may have.
struct AllowedValues {
  std::string_view field;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

// Reads an optional integer field, and checks its range.
Result<std::optional<std::uint64_t>> read_integer(const Section& section,
                                                  const AllowedValues& range) {
  const auto value = member(section.object, range.field);
  if (!value) return std::optional<std::uint64_t>{};
  const auto number = value->integer();
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) < range.min ||
      static_cast<std::uint64_t>(*number) > range.max) {
    return wrong(section.file, "\"" + std::string(range.field) + "\" must be an integer from " +
                                   std::to_string(range.min) + " to " + std::to_string(range.max));
  }
  return std::optional{static_cast<std::uint64_t>(*number)};
}

ModelFamily family_of(const json::Value& config, std::string_view model_type) {
  if (model_type == "qwen2_vl") return ModelFamily::Qwen2Vl;
  if (model_type == "qwen2_5_vl") return ModelFamily::Qwen2_5Vl;
  if (model_type == "qwen3_vl" || model_type == "qwen3_vl_moe") return ModelFamily::Qwen3Vl;
  // Each of these fields marks a model that takes media by some other rule. Its images have no
  // known number of tokens, and its prompts must not count as plain text.
  for (const std::string_view sign :
       {"vision_config", "audio_config", "thinker_config", "image_token_id", "image_token_index",
        "mm_vision_tower", "visual", "img_processor"}) {
    if (member(config, sign)) return ModelFamily::Unknown;
  }
  return ModelFamily::TextOnly;
}

Result<std::optional<TokenId>> read_token_id(const Section& config, std::string_view field) {
  const auto id = SL_TRY(read_integer(config, {field, 0, std::numeric_limits<TokenId>::max()}));
  if (!id) return std::optional<TokenId>{};
  return std::optional{static_cast<TokenId>(*id)};
}

Result<Placeholders> read_placeholders(const Section& config) {
  Placeholders ids;
  ids.image = SL_TRY(read_token_id(config, "image_token_id"));
  ids.video = SL_TRY(read_token_id(config, "video_token_id"));
  ids.vision_start = SL_TRY(read_token_id(config, "vision_start_token_id"));
  ids.vision_end = SL_TRY(read_token_id(config, "vision_end_token_id"));
  // Without this id the router could not find the images in a prompt.
  if (!ids.image) {
    return wrong(config.file, "\"image_token_id\" is missing. A Qwen vision model needs it");
  }
  return ids;
}

// The names of a pixel limit, in the order in which transformers 5 reads them. The old name has
// priority over "size".
struct LimitNames {
  std::string_view old_name;
  std::string_view edge;
};

Result<std::optional<std::uint64_t>> read_limit(const Section& processor, LimitNames names) {
  if (const auto direct = SL_TRY(read_integer(processor, {names.old_name, 1, kPixelsLimitMax}))) {
    return direct;
  }
  const auto size = member(processor.object, "size");
  if (!size) return std::optional<std::uint64_t>{};
  if (!size->is(json::Kind::Object)) return wrong(processor.file, "\"size\" must be an object");
  const Section inner{processor.file, *size};
  if (const auto edge = SL_TRY(read_integer(inner, {names.edge, 1, kPixelsLimitMax}))) return edge;
  const auto limit = SL_TRY(read_integer(inner, {names.old_name, 1, kPixelsLimitMax}));
  if (!limit) {
    return wrong(processor.file, "\"size\" must contain \"" + std::string(names.edge) +
                                     "\", the pixel limit of an image");
  }
  return limit;
}

// The defaults of the class Qwen2VLImageProcessor (transformers 5.23), which serves all Qwen
// families. A model whose limits or patches differ has them in its files.
constexpr ImageRule kRuleDefault{
    .patch = 14, .merge = 2, .pixels_min = 56 * 56, .pixels_max = 28 * 28 * 1280};

Result<ImageRule> read_rule(const Section& processor) {
  ImageRule rule = kRuleDefault;
  const auto patch = SL_TRY(read_integer(processor, {"patch_size", 1, kPatchMax}));
  const auto merge = SL_TRY(read_integer(processor, {"merge_size", 1, kMergeMax}));
  rule.patch = static_cast<std::uint32_t>(patch.value_or(rule.patch));
  rule.merge = static_cast<std::uint32_t>(merge.value_or(rule.merge));
  const auto least = SL_TRY(read_limit(processor, {"min_pixels", "shortest_edge"}));
  const auto most = SL_TRY(read_limit(processor, {"max_pixels", "longest_edge"}));
  rule.pixels_min = least.value_or(rule.pixels_min);
  rule.pixels_max = most.value_or(rule.pixels_max);
  if (rule.pixels_min > rule.pixels_max) {
    return wrong(processor.file, "the lower pixel limit of images exceeds the upper one");
  }
  return rule;
}

// Reads the settings of the image processor. An "image_processor" in processor_config.json has
// priority over preprocessor_config.json.
Result<ImageRule> read_image_rule(const ModelFiles& files) {
  if (files.processor) {
    const auto document = SL_TRY(parse_object(kProcessorFile, *files.processor));
    if (const auto nested = member(document.root(), "image_processor")) {
      return read_rule({kProcessorFile, *nested});
    }
  }
  // A guess would give wrong token counts, and with them wrong block keys.
  if (!files.preprocessor) {
    return wrong(kPreprocessorFile,
                 "is missing. The router needs it to count the tokens of an image");
  }
  const auto document = SL_TRY(parse_object(kPreprocessorFile, *files.preprocessor));
  return read_rule({kPreprocessorFile, document.root()});
}

// Computes the limit as vLLM 0.32 derives max_model_len: the positions, multiplied by the rope
// scaling factor.
Result<std::optional<std::uint32_t>> read_tokens_max(const json::Value& config) {
  constexpr std::uint64_t kTokensMax = std::numeric_limits<std::uint32_t>::max();
  const json::Value text = member(config, "text_config").value_or(config);
  auto positions =
      SL_TRY(read_integer({kConfigFile, text}, {"max_position_embeddings", 1, kTokensMax}));
  if (!positions) return std::optional<std::uint32_t>{};
  double tokens = static_cast<double>(*positions);
  auto rope = member(text, "rope_scaling");
  if (!rope) rope = member(text, "rope_parameters");
  if (rope && rope->is(json::Kind::Object)) {
    auto type = member(*rope, "rope_type");
    if (!type) type = member(*rope, "type");
    const std::string_view name = type ? type->string().value_or("") : "";
    const auto factor = member(*rope, "factor");
    const auto original = SL_TRY(
        read_integer({kConfigFile, *rope}, {"original_max_position_embeddings", 1, kTokensMax}));
    // For "yarn" the factor applies to the original positions. For "su", "longrope" and "llama3"
    // vLLM does not apply it.
    if (name == "yarn" && original) tokens = static_cast<double>(*original);
    const bool is_stretched = name != "su" && name != "longrope" && name != "llama3";
    if (is_stretched && factor) tokens *= factor->number().value_or(1.0);
  }
  if (!(tokens >= 1) || tokens > static_cast<double>(kTokensMax)) {
    return wrong(kConfigFile, "the rope scaling gives no usable context length");
  }
  return std::optional{static_cast<std::uint32_t>(tokens)};
}

// A token in tokenizer_config.json is a string or an object with "content".
std::optional<std::string> token_text(const json::Value& value) {
  if (const auto text = value.string()) return std::string(*text);
  const auto content = value.find("content");
  const auto text = content ? content->string() : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

Result<std::vector<SpecialToken>> read_special_tokens(const json::Value& config) {
  constexpr std::array<std::string_view, 7> kNames{
      "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
  std::vector<SpecialToken> tokens;
  for (const std::string_view name : kNames) {
    const auto value = member(config, name);
    if (!value) continue;
    auto text = token_text(*value);
    if (!text) {
      return wrong(kTokenizerConfigFile,
                   "\"" + std::string(name) + "\" must be a string or an object with \"content\"");
    }
    tokens.push_back({std::string(name), std::move(*text)});
  }
  return tokens;
}

// A named template of tokenizer_config.json. The field is a string, which is the "default"
// template, or a list of {"name", "template"}.
Result<std::optional<std::string>> named_template(const json::Value& config,
                                                  std::string_view name) {
  const auto value = member(config, "chat_template");
  if (!value) return std::optional<std::string>{};
  if (const auto text = value->string()) {
    if (name != "default") return std::optional<std::string>{};
    return std::optional<std::string>(*text);
  }
  if (!value->is(json::Kind::Array)) {
    return wrong(kTokenizerConfigFile, "\"chat_template\" must be a string or a list");
  }
  for (const json::Value entry : *value) {
    const auto entry_name = entry.find("name");
    const auto source = entry.find("template");
    if (!entry_name || entry_name->string() != name || !source) continue;
    const auto text = source->string();
    if (text) return std::optional<std::string>(*text);
  }
  return std::optional<std::string>{};
}

// The templates of one model, by their origin.
struct Templates {
  std::optional<std::string> own_file;   // chat_template.jinja
  std::optional<std::string> processor;  // chat_template.json
  std::optional<std::string> tokenizer;  // tokenizer_config.json
  std::optional<std::string> tools;      // its "tool_use" entry
};

// The first candidate that exists, or an empty text.
std::string first_of(std::initializer_list<const std::optional<std::string>*> candidates) {
  for (const auto* candidate : candidates) {
    if (*candidate) return **candidate;
  }
  return {};
}

Result<std::optional<std::string>> read_template_json(const ModelFiles& files) {
  if (!files.template_json) return std::optional<std::string>{};
  const auto document = SL_TRY(parse_object(kTemplateJsonFile, *files.template_json));
  const auto value = member(document.root(), "chat_template");
  const auto text = value ? value->string() : std::nullopt;
  if (!text) return wrong(kTemplateJsonFile, "\"chat_template\" must be a string");
  return std::optional<std::string>(*text);
}

Result<Done> read_tokenizer_config(const ModelFiles& files, ModelProfile& profile) {
  Templates templates{.own_file = files.template_jinja};
  templates.processor = SL_TRY(read_template_json(files));
  if (files.tokenizer_config) {
    const auto document = SL_TRY(parse_object(kTokenizerConfigFile, *files.tokenizer_config));
    profile.special_tokens = SL_TRY(read_special_tokens(document.root()));
    templates.tokenizer = SL_TRY(named_template(document.root(), "default"));
    templates.tools = SL_TRY(named_template(document.root(), "tool_use"));
  }
  // Without tools vLLM takes the template of the processor first, which is the .jinja or .json
  // file. With tools it takes the tokenizer's template first. A .jinja file is the template of
  // both.
  const Templates& t = templates;
  profile.chat_template = first_of({&t.own_file, &t.processor, &t.tokenizer, &t.tools});
  profile.chat_template_with_tools = first_of({&t.own_file, &t.tools, &t.tokenizer, &t.processor});
  return Done{};
}

}  // namespace

std::string_view name_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::TextOnly:
      return "text_only";
    case ModelFamily::Qwen2Vl:
      return "qwen2_vl";
    case ModelFamily::Qwen2_5Vl:
      return "qwen2_5_vl";
    case ModelFamily::Qwen3Vl:
      return "qwen3_vl";
    case ModelFamily::Unknown:
      return "unknown";
  }
  return "unknown";
}

Result<ModelProfile> parse_model(const ModelFiles& files) {
  const auto document = SL_TRY(parse_object(kConfigFile, files.config));
  const json::Value config = document.root();
  ModelProfile profile;
  const auto type = member(config, "model_type");
  if (!type || !type->string()) return wrong(kConfigFile, "\"model_type\" must be a string");
  profile.model_type = std::string(*type->string());
  profile.family = family_of(config, profile.model_type);
  if (profile.family != ModelFamily::TextOnly && profile.family != ModelFamily::Unknown) {
    profile.placeholders = SL_TRY(read_placeholders({kConfigFile, config}));
    profile.image_rule = SL_TRY(read_image_rule(files));
  }
  profile.tokens_max = SL_TRY(read_tokens_max(config));
  SL_TRY(read_tokenizer_config(files, profile));
  return profile;
}

}  // namespace sightline::model
