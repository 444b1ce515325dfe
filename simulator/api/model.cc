// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/model.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace sightline::api {
namespace {

// Where neither settings nor files give a length.
constexpr std::uint32_t kModelLengthDefault = 32'768;

std::optional<std::string> read_file(const std::string& directory, std::string_view name) {
  std::ifstream file(directory + "/" + std::string(name), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

Result<std::string> required(const std::string& directory, std::string_view name) {
  auto content = read_file(directory, name);
  if (content) return *std::move(content);
  return client_error(ErrorCode::InvalidArgument,
                      directory + " has no " + std::string(name) +
                          ": give --model-path a Hugging Face model directory");
}

Result<model::ModelFiles> read_files(const std::string& directory) {
  model::ModelFiles files;
  files.config = SL_TRY(required(directory, model::kConfigFile));
  files.tokenizer_config = read_file(directory, model::kTokenizerConfigFile);
  files.template_jinja = read_file(directory, model::kTemplateFile);
  files.template_json = read_file(directory, model::kTemplateJsonFile);
  files.preprocessor = read_file(directory, model::kPreprocessorFile);
  files.processor = read_file(directory, model::kProcessorFile);
  return files;
}

Result<chat::ChatTemplate> parse_template(const model::ModelProfile& profile) {
  chat::SpecialTokens special;
  for (const auto& token : profile.special_tokens) special.emplace_back(token.name, token.text);
  chat::MediaPlaceholders placeholders;
  if (profile.family != model::Family::TextOnly) {
    placeholders.image = "<|vision_start|><|image_pad|><|vision_end|>";
  }
  return chat::ChatTemplate::create(profile.chat_template, special, placeholders);
}

}  // namespace

std::optional<core::Lora> Model::lora(std::string_view requested) const {
  const auto found = std::find(lora_modules.begin(), lora_modules.end(), requested);
  if (found == lora_modules.end()) return std::nullopt;
  return core::Lora{*found, static_cast<std::uint32_t>(found - lora_modules.begin()) + 1};
}

Result<std::shared_ptr<const Model>> load_model(const ModelOptions& options) {
  auto model = std::make_shared<Model>();
  model->path = options.path;
  model->name = options.served_name.empty() ? options.path : options.served_name;
  model->lora_modules = options.lora_modules;
  const model::ModelFiles files = SL_TRY(read_files(options.path));
  model->profile = SL_TRY(model::parse_model(files));
  const std::string tokenizer = SL_TRY(required(options.path, model::kTokenizerFile));
  model->tokenizer = SL_TRY(tokenizer::Tokenizer::create(tokenizer));
  model->words = SL_TRY(core::OutputWords::create(*model->tokenizer));
  if (!model->profile.chat_template.empty()) {
    model->chat_template = SL_TRY(parse_template(model->profile));
  }
  const std::uint32_t by_files = model->profile.tokens_max.value_or(kModelLengthDefault);
  const std::uint64_t asked = options.max_model_len > 0 ? options.max_model_len : by_files;
  model->max_model_len = static_cast<std::uint32_t>(std::min(asked, options.pool_tokens));
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace sightline::api
