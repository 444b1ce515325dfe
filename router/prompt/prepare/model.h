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

// All data that turns a request into tokens. Thread safety: immutable.
struct LoadedModel {
  model::ModelProfile profile;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer;
  // The template of requests without tools. If the model has no template, the router routes its
  // chat requests without overlap.
  std::optional<chat::ChatTemplate> chat_template;
  // The template of requests with tools. It differs from the first one only if the model names a
  // template of its own for tools.
  std::optional<chat::ChatTemplate> tools_template;
  // BLAKE3 of the names and contents of the files that were read, as 64 hexadecimal digits.
  // Processes with the same digest make the same tokens of a request. The weights do not influence
  // it.
  std::string files_digest;
};

// Reads a Hugging Face model directory. config.json and tokenizer.json are required. These files
// are optional: tokenizer_config.json, chat_template.jinja or chat_template.json,
// preprocessor_config.json and processor_config.json.
//
// Blocking I/O. Errors: InvalidArgument, not blamed on the client. The message names the file and
// the fault.
Result<std::shared_ptr<const LoadedModel>> load_model(const std::string& path);

}  // namespace sightline::prepare
