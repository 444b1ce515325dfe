// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "simulator/processor/image_grid.h"

namespace sightline::processor {

// The settings that an engine reads from a Hugging Face model directory, besides weights and
// tokenizer.
struct Checkpoint {
  std::string model_type;
  bool takes_media = false;
  // The model's placeholder tokens. Absent unless `images` is present.
  std::optional<TokenId> image_token;
  std::optional<TokenId> video_token;
  // Absent for a model without media, or with a processor without a simulation.
  std::optional<ImageSettings> images;
  // Prompt and answer together.
  std::optional<std::uint32_t> tokens_max;
  // bos_token and similar tokens, by name.
  std::vector<std::pair<std::string, std::optional<std::string>>> special_tokens;
  // The template for requests without tools, or empty.
  std::string chat_template;
};

// Reads a model directory. Blocking I/O. Errors: InvalidArgument with the name of the file.
Result<Checkpoint> read_checkpoint(const std::string& directory);

// Reads a required file. Error: InvalidArgument.
Result<std::string> read_model_file(const std::string& directory, std::string_view name);

}  // namespace sightline::processor
