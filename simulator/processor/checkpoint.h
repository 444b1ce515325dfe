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

// What an engine takes from a Hugging Face model directory besides weights and tokenizer.
struct Checkpoint {
  std::string model_type;
  bool takes_media = false;
  // The model's placeholder tokens; none unless images is there.
  std::optional<TokenId> image_token;
  std::optional<TokenId> video_token;
  std::optional<ImageSettings> images;      // none: no media, or a processor that is not simulated
  std::optional<std::uint32_t> tokens_max;  // prompt and answer together
  // bos_token and its like, by name.
  std::vector<std::pair<std::string, std::optional<std::string>>> special_tokens;
  std::string chat_template;  // of requests without tools; empty: there is none
};

// Errors: InvalidArgument naming the file.
Result<Checkpoint> read_checkpoint(const std::string& directory);

// A file that must be there. Error: InvalidArgument.
Result<std::string> read_model_file(const std::string& directory, std::string_view name);

}  // namespace sightline::processor
