// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/prompt/chat/chat_template.h"
#include "router/prompt/tokenizer/tokenizer.h"
#include "simulator/core/output_words.h"
#include "simulator/core/published_event.h"
#include "simulator/processor/checkpoint.h"

namespace sightline::api {

// The settings of a model.
struct ModelOptions {
  // A Hugging Face model directory.
  std::string path;
  // Empty: the path.
  std::string served_name;
  // 0: the limit of the model's files.
  std::uint32_t max_model_len = 0;
  // The longest sequence that fits into an engine's block pool. max_model_len is limited to it.
  std::uint64_t pool_tokens = UINT64_MAX;
  std::vector<std::string> lora_modules;
};

// The model that an engine has loaded. Immutable: any thread may use it.
struct EngineModel {
  std::string path;
  // The name that requests and answers use.
  std::string name;
  std::vector<std::string> lora_modules;
  std::uint32_t max_model_len = 0;
  processor::Checkpoint checkpoint;
  // Absent if the model's files have no template.
  std::optional<chat::ChatTemplate> chat_template;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer;
  // The words of the model's answers.
  std::shared_ptr<const core::OutputWords> words;

  // Returns the adapter with this name, if it exists.
  [[nodiscard]] std::optional<core::Lora> lora(std::string_view requested) const;
};

// Reads the directory. Errors: InvalidArgument or Unsupported, with the name of the file.
Result<std::shared_ptr<const EngineModel>> load_model(const ModelOptions& options);

}  // namespace sightline::api
