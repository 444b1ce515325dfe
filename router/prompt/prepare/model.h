// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"

#include "router/prompt/chat/chat_template.h"
#include "router/prompt/model/model_directory.h"
#include "router/prompt/tokenizer/tokenizer.h"

namespace sightline::prepare {

// All that turns a request into tokens. Thread safety: immutable.
struct LoadedModel {
  model::ModelProfile profile;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer;
  // Absent: chat requests of this model are routed without overlap.
  std::optional<chat::ChatTemplate> chat_template;
  // Taken for requests with tools, where the model names a template of its own for them.
  std::optional<chat::ChatTemplate> tools_template;
  // BLAKE3 of the names and contents of the files that were read, 64 hexadecimal digits: processes
  // that have the same make the same tokens of a request. Weights are not part of it.
  std::string files_digest;
};

// Reads a Hugging Face model directory: config.json and tokenizer.json are required,
// tokenizer_config.json, chat_template.jinja or .json, preprocessor_config.json and
// processor_config.json are taken if there. Errors name the file and what is wrong with it.
Result<std::shared_ptr<const LoadedModel>> load_model(const std::string& path);

}  // namespace sightline::prepare
