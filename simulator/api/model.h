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
#include "simulator/core/kv_event.h"
#include "simulator/core/output_words.h"
#include "simulator/processor/checkpoint.h"

namespace sightline::api {

struct ModelOptions {
  std::string path;                 // Hugging Face model directory
  std::string served_name;          // empty: the path
  std::uint32_t max_model_len = 0;  // 0: as the model's files say
  // Longest sequence that an engine's block pool holds; max_model_len is cut to it.
  std::uint64_t pool_tokens = UINT64_MAX;
  std::vector<std::string> lora_modules;
};

// What an engine has loaded. Immutable: any thread.
struct EngineModel {
  std::string path;
  std::string name;
  std::vector<std::string> lora_modules;
  std::uint32_t max_model_len = 0;
  processor::Checkpoint checkpoint;
  std::optional<chat::ChatTemplate> chat_template;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const core::OutputWords> words;

  // The adapter of that name.
  [[nodiscard]] std::optional<core::Lora> lora(std::string_view requested) const;
};

// Reads the directory. Errors: InvalidArgument or Unsupported naming the file.
Result<std::shared_ptr<const EngineModel>> load_model(const ModelOptions& options);

}  // namespace sightline::api
