// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "common/base/json.h"

namespace sightline::processor {
namespace {

using MaybeValue = std::optional<json::Value>;
using MaybeNumber = std::optional<std::uint64_t>;

// The limit of numbers in files, far above any id, length or area. With it no count of tokens
// exceeds 32 bits.
constexpr std::int64_t kNumberMax = std::int64_t{1} << 31U;

Error invalid(std::string_view file, const std::string& what) {
  return client_error(ErrorCode::InvalidArgument, std::string(file) + ": " + what);
}

std::optional<std::string> read_file(const std::string& directory, std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(directory) / name;
  std::error_code error;
  // Opening a pipe would wait for a writer.
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

Result<json::Document> parse_file(std::string_view name, std::string content) {
  auto document = json::Document::parse(std::move(content));
  if (!document.ok()) return invalid(name, document.error().message);
  if (!document->root().is(json::Kind::Object)) return invalid(name, "must hold a JSON object");
  return document;
}

// Reads a file that may be missing.
Result<std::optional<json::Document>> parse_optional(const std::string& directory,
                                                     std::string_view name) {
  auto content = read_file(directory, name);
  if (!content) return std::optional<json::Document>{};
  return std::optional<json::Document>(SL_TRY(parse_file(name, *std::move(content))));
}

MaybeValue get(const json::Value& object, std::string_view name) {
  const MaybeValue value = object.find(name);
  return value && !value->is(json::Kind::Null) ? value : std::nullopt;
}

Result<MaybeNumber> get_number(std::string_view file, const json::Value& object,
                               std::string_view name) {
  const MaybeValue value = get(object, name);
  if (!value) return MaybeNumber{};
  const auto number = value->integer();
  if (!number || *number < 0 || *number > kNumberMax) {
    return invalid(file, "\"" + std::string(name) + "\" is not a usable integer");
  }
  return MaybeNumber(static_cast<std::uint64_t>(*number));
}

// Replaces `number` by the number with this name, if it exists.
Result<Done> update(const std::pair<std::string_view, json::Value>& source, std::string_view name,
                    std::uint64_t& number) {
  const MaybeNumber given = SL_TRY(get_number(source.first, source.second, name));
  if (given == 0U) return invalid(source.first, "\"" + std::string(name) + "\" is 0");
  number = given.value_or(number);
  return Done{};
}

// The keyword arguments of Qwen2VLImageProcessor's constructor. The pixel limits have priority over
// "size". "size" must then have both edges.
Result<ImageSettings> construct(std::string_view file, const json::Value& arguments) {
  ImageSettings settings;
  const std::pair source{file, arguments};
  SL_TRY(update(source, "patch_size", settings.patch_size));
  SL_TRY(update(source, "merge_size", settings.merge_size));
  if (const MaybeValue size = get(arguments, "size")) {
    const bool has_shortest = get(*size, "shortest_edge") || get(arguments, "min_pixels");
    const bool has_longest = get(*size, "longest_edge") || get(arguments, "max_pixels");
    if (!has_shortest || !has_longest) {
      return invalid(file, "size must contain 'shortest_edge' and 'longest_edge' keys.");
    }
    SL_TRY(update({file, *size}, "shortest_edge", settings.shortest_edge));
    SL_TRY(update({file, *size}, "longest_edge", settings.longest_edge));
  }
  SL_TRY(update(source, "min_pixels", settings.shortest_edge));
  SL_TRY(update(source, "max_pixels", settings.longest_edge));
  return settings;
}

Result<ImageSettings> read_images(const std::string& directory) {
  constexpr std::string_view kProcessor = "processor_config.json";
  constexpr std::string_view kPreprocessor = "preprocessor_config.json";
  const auto processor = SL_TRY(parse_optional(directory, kProcessor));
  // A processor configuration with an image processor has priority.
  const MaybeValue own = processor ? get(processor->root(), "image_processor") : std::nullopt;
  if (own) return construct(kProcessor, *own);
  const auto preprocessor = SL_TRY(parse_optional(directory, kPreprocessor));
  if (!preprocessor) return invalid(kPreprocessor, "Can't load image processor");
  return construct(kPreprocessor, preprocessor->root());
}

bool speaks_of_media(const json::Value& config) {
  for (const json::Value member : config) {
    if (member.is(json::Kind::Null)) continue;
    for (const std::string_view sign : {"vision", "visual", "image", "img_", "audio", "thinker"}) {
      if (member.name().find(sign) != std::string_view::npos) return true;
    }
  }
  return false;
}

bool is_qwen_vision(std::string_view model_type) {
  return model_type == "qwen2_vl" || model_type == "qwen2_5_vl" || model_type == "qwen3_vl" ||
         model_type == "qwen3_vl_moe";
}

// Returns the context for this number of positions with rotary scaling.
Result<double> stretched(const json::Value& rope, double positions) {
  MaybeValue type = get(rope, "rope_type");
  if (!type) type = get(rope, "type");
  const std::string_view name = type ? type->string().value_or("") : "";
  if (name == "su" || name == "longrope" || name == "llama3") return positions;  // included already
  const MaybeNumber original =
      SL_TRY(get_number("config.json", rope, "original_max_position_embeddings"));
  if (name == "yarn" && original) positions = static_cast<double>(*original);
  const MaybeValue factor = get(rope, "factor");
  return factor ? positions * factor->number().value_or(1) : positions;
}

// Computes max_model_len as vLLM 0.32 does (get_and_verify_max_len).
Result<std::optional<std::uint32_t>> read_tokens_max(const json::Value& config) {
  const json::Value text = get(config, "text_config").value_or(config);
  const MaybeNumber positions = SL_TRY(get_number("config.json", text, "max_position_embeddings"));
  if (!positions) return std::optional<std::uint32_t>{};
  auto length = static_cast<double>(*positions);
  MaybeValue rope = get(text, "rope_scaling");
  if (!rope) rope = get(text, "rope_parameters");
  if (rope) length = SL_TRY(stretched(*rope, length));
  if (!(length >= 1 && length < 0x1p32)) return invalid("config.json", "no usable length");
  return std::optional(static_cast<std::uint32_t>(length));
}

std::optional<std::string> text_of(const MaybeValue& value) {
  const auto text = value ? value->string() : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

// Returns a template of tokenizer_config.json: the only one, the default one, or the first one.
std::optional<std::string> template_in(const json::Value& tokenizer_config) {
  const MaybeValue value = get(tokenizer_config, "chat_template");
  if (!value || !value->is(json::Kind::Array)) return text_of(value);
  std::optional<std::string> chosen;
  for (const json::Value entry : *value) {
    const bool is_default = text_of(get(entry, "name")) == "default";
    if (is_default || !chosen) chosen = text_of(get(entry, "template"));
  }
  return chosen;
}

Result<std::string> choose_template(const std::string& directory, const MaybeValue& tokenizer) {
  if (auto own = read_file(directory, "chat_template.jinja")) return *std::move(own);
  const auto document = SL_TRY(parse_optional(directory, "chat_template.json"));
  const auto in_json = document ? text_of(get(document->root(), "chat_template")) : std::nullopt;
  if (in_json) return *in_json;
  return tokenizer ? template_in(*tokenizer).value_or("") : "";
}

Result<Done> read_texts(const std::string& directory, Checkpoint& checkpoint) {
  const auto document = SL_TRY(parse_optional(directory, "tokenizer_config.json"));
  const MaybeValue config = document ? MaybeValue(document->root()) : std::nullopt;
  checkpoint.chat_template = SL_TRY(choose_template(directory, config));
  if (!config) return Done{};
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const MaybeValue token = get(*config, name);
    if (!token) continue;
    const bool is_object = token->is(json::Kind::Object);
    auto text = text_of(is_object ? get(*token, "content") : token);
    if (!text) return invalid("tokenizer_config.json", std::string(name) + " is not a token");
    checkpoint.special_tokens.emplace_back(name, std::move(text));
  }
  return Done{};
}

}  // namespace

Result<std::string> read_model_file(const std::string& directory, std::string_view name) {
  auto content = read_file(directory, name);
  if (content) return *std::move(content);
  return client_error(ErrorCode::InvalidArgument,
                      directory + " has no " + std::string(name) +
                          ": give --model-path a Hugging Face model directory");
}

Result<Checkpoint> read_checkpoint(const std::string& directory) {
  constexpr std::string_view kConfig = "config.json";
  const std::string content = SL_TRY(read_model_file(directory, kConfig));
  const auto document = SL_TRY(parse_file(kConfig, content));
  const json::Value config = document.root();
  const auto type = text_of(get(config, "model_type"));
  if (!type) return invalid(kConfig, "Unrecognized model: it should have a model_type");
  Checkpoint checkpoint{.model_type = *type, .takes_media = speaks_of_media(config)};
  if (is_qwen_vision(*type)) {
    checkpoint.takes_media = true;
    checkpoint.images = SL_TRY(read_images(directory));
    const MaybeNumber image = SL_TRY(get_number(kConfig, config, "image_token_id"));
    const MaybeNumber video = SL_TRY(get_number(kConfig, config, "video_token_id"));
    if (!image) return invalid(kConfig, "a vision model needs an image_token_id");
    checkpoint.image_token = static_cast<TokenId>(*image);
    if (video) checkpoint.video_token = static_cast<TokenId>(*video);
  }
  checkpoint.tokens_max = SL_TRY(read_tokens_max(config));
  SL_TRY(read_texts(directory, checkpoint));
  return checkpoint;
}

}  // namespace sightline::processor
