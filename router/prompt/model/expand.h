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

// The kinds of media that a prompt has placeholder tokens for.
enum class PlaceholderKind : std::uint8_t { Image, Video, Audio };

// A media item of the request. The items of one modality are in the order in which they appear.
struct MediaItem {
  PlaceholderKind modality = PlaceholderKind::Image;
  // The name of the item in the engine's KV events. A downloaded or inline image has its MediaId in
  // hexadecimal digits here.
  std::string identifier;
  // The placeholder tokens that the item has in the engine's prompt. Absent if the router cannot
  // compute them.
  std::optional<std::uint32_t> tokens;
};

// The position of an item's placeholder tokens in the expanded prompt, in tokens.
struct PlaceholderSpan {
  // Index into the items that expand() was called with.
  std::size_t item = 0;
  std::size_t start = 0;
  std::size_t length = 0;
  friend bool operator==(const PlaceholderSpan&, const PlaceholderSpan&) = default;
};

// How much of a prompt the router knows token by token.
enum class Certainty : std::uint8_t {
  Exact,         // every token equals the engine's token
  UnknownMedia,  // tokens are certain before the first item of unknown length
  Mismatch,      // placeholders and items do not match: the router claims no overlap
};

// "exact", "unknown_media" or "mismatch".
std::string_view name_of(Certainty certainty);

// The routing view of a prompt: the token ids that the engine computes with, media expanded.
struct Prompt {
  std::vector<TokenId> tokens;
  // In ascending order, all within the first exact_tokens tokens.
  std::vector<PlaceholderSpan> spans;
  // The number of leading tokens that are certain. It is the whole prompt for Exact, the tokens
  // before the first unknown item for UnknownMedia, and 0 for Mismatch. The tokens behind them are
  // the rendered ones, with one token per item. They give a lower bound of the prompt's length.
  std::size_t exact_tokens = 0;
  Certainty certainty = Certainty::Exact;
};

// Rendered and tokenized chat text, in which each item has one placeholder token.
struct Rendered {
  std::span<const TokenId> tokens;
  // The most tokens that the expanded prompt may have.
  std::size_t tokens_max = 0;
};

// Repeats each placeholder token once per token of its item, as vLLM 0.32 does for the Qwen
// families. The n-th placeholder of a modality belongs to the n-th item of that modality.
//
// If the user's text contains placeholders, their number differs from the number of items. The
// result is then Mismatch. Models here have no audio placeholder, and therefore audio items give
// Mismatch as well.
//
// Takes time linear in the expanded prompt. Error: TooLarge, blamed on the client, if the expansion
// exceeds tokens_max.
Result<Prompt> expand(const Rendered& rendered, std::span<const MediaItem> items,
                      const Placeholders& placeholders);

}  // namespace sightline::model
