// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/prompt/model/model_directory.h"

namespace sightline::model {

enum class PlaceholderKind : std::uint8_t { Image, Video, Audio };

// A media item of the request, in the order in which items of its modality appear.
struct MediaItem {
  PlaceholderKind modality = PlaceholderKind::Image;
  std::string identifier;               // as the engine will name it in its events
  std::optional<std::uint32_t> tokens;  // nothing when its size is not known here
};

// Where an item's placeholder tokens stand in the expanded prompt.
struct PlaceholderSpan {
  std::size_t item = 0;  // index into the items given
  std::size_t start = 0;
  std::size_t length = 0;
  friend bool operator==(const PlaceholderSpan&, const PlaceholderSpan&) = default;
};

enum class Certainty : std::uint8_t {
  Exact,         // every token is what the engine computes with
  UnknownMedia,  // tokens are certain up to the first item of unknown length
  Mismatch,      // placeholders and items do not match: no overlap may be claimed
};

std::string_view name_of(Certainty certainty);

// The routing view of a prompt: token ids as the engine sees them, media expanded.
struct Prompt {
  std::vector<TokenId> tokens;
  std::vector<PlaceholderSpan> spans;  // ascending, within the first exact_tokens tokens
  // How many leading tokens are certain: all, those before the first unknown item, or none.
  // Those behind are the rendered tokens, unexpanded: a lower bound of the prompt's length.
  std::size_t exact_tokens = 0;
  Certainty certainty = Certainty::Exact;
};

// Rendered and tokenized chat text with one placeholder token per item, and the prompt's bound.
struct Rendered {
  std::span<const TokenId> tokens;
  std::size_t tokens_max = 0;  // expanded
};

// Repeats each placeholder as often as its item has tokens, as vLLM 0.32 does for the Qwen
// families: the n-th placeholder of a modality is the n-th item of that modality.
// Placeholders written by the user make their number differ from that of the items: Mismatch.
// Error: TooLarge (the client's) when the expansion exceeds tokens_max.
Result<Prompt> expand(const Rendered& rendered, std::span<const MediaItem> items,
                      const Placeholders& placeholders);

}  // namespace sightline::model
