// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/simulated_model.h"

#include <algorithm>
#include <utility>

namespace sightline::api {
namespace {

// The limit if neither settings nor files have one.
constexpr std::uint32_t kModelLengthDefault = 32'768;

Result<chat::ChatTemplate> parse_template(const processor::Checkpoint& checkpoint) {
  chat::MediaPlaceholders placeholders;
  // This is vLLM's placeholder text for an image of a Qwen VL model.
  if (checkpoint.takes_media) placeholders.image = "<|vision_start|><|image_pad|><|vision_end|>";
  return chat::ChatTemplate::create(checkpoint.chat_template, checkpoint.special_tokens,
                                    placeholders);
}

}  // namespace

std::optional<core::Lora> EngineModel::lora(std::string_view requested) const {
  const auto found = std::find(lora_modules.begin(), lora_modules.end(), requested);
  if (found == lora_modules.end()) return std::nullopt;
  return core::Lora{*found, static_cast<std::uint32_t>(found - lora_modules.begin()) + 1};
}

Result<std::shared_ptr<const EngineModel>> load_model(const ModelOptions& options) {
  auto model = std::make_shared<EngineModel>();
  model->path = options.path;
  model->name = options.served_name.empty() ? options.path : options.served_name;
  model->lora_modules = options.lora_modules;
  model->checkpoint = SL_TRY(processor::read_checkpoint(options.path));
  const std::string tokenizer = SL_TRY(processor::read_model_file(options.path, "tokenizer.json"));
  model->tokenizer = SL_TRY(tokenizer::Tokenizer::create(tokenizer));
  model->words = SL_TRY(core::OutputWords::create(*model->tokenizer));
  if (!model->checkpoint.chat_template.empty()) {
    model->chat_template = SL_TRY(parse_template(model->checkpoint));
  }
  const std::uint32_t by_files = model->checkpoint.tokens_max.value_or(kModelLengthDefault);
  const std::uint64_t asked = options.max_model_len > 0 ? options.max_model_len : by_files;
  // A sequence beyond the block pool could never run.
  model->max_model_len = static_cast<std::uint32_t>(std::min(asked, options.pool_tokens));
  return std::shared_ptr<const EngineModel>(std::move(model));
}

}  // namespace sightline::api
