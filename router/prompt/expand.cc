// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/expand.h"

#include <algorithm>

namespace sightline::prompt {
namespace {

// The placeholder token of a modality; nothing when the model has none.
std::optional<TokenId> placeholder_of(const Placeholders& placeholders, Modality modality) {
  switch (modality) {
    case Modality::Image:
      return placeholders.image;
    case Modality::Video:
      return placeholders.video;
    case Modality::Audio:
      return std::nullopt;
  }
  return std::nullopt;
}

bool counts_match(const Rendered& rendered, std::span<const MediaItem> items,
                  const Placeholders& placeholders) {
  for (const Modality modality : {Modality::Image, Modality::Video, Modality::Audio}) {
    const auto items_of_it = std::count_if(items.begin(), items.end(), [&](const MediaItem& item) {
      return item.modality == modality;
    });
    const auto token = placeholder_of(placeholders, modality);
    const auto found =
        token ? std::count(rendered.tokens.begin(), rendered.tokens.end(), *token) : 0;
    if (found != items_of_it) return false;
  }
  return true;
}

// Walks the items of one modality in order.
class ItemsOf {
 public:
  ItemsOf(std::span<const MediaItem> items, Modality modality)
      : items_(items), modality_(modality) {}

  // Index of the next item; counts_match has made sure that there is one.
  std::size_t next() {
    while (items_[at_].modality != modality_) ++at_;
    return at_++;
  }

 private:
  std::span<const MediaItem> items_;
  Modality modality_;
  std::size_t at_ = 0;
};

Prompt unexpanded(const Rendered& rendered, Certainty certainty) {
  Prompt prompt;
  prompt.tokens.assign(rendered.tokens.begin(), rendered.tokens.end());
  prompt.certainty = certainty;
  return prompt;
}

Error too_long(std::size_t tokens_max) {
  return client_error(ErrorCode::TooLarge,
                      "the prompt has more than the " + std::to_string(tokens_max) +
                          " tokens that this model takes; shorten it or send fewer or smaller "
                          "images");
}

}  // namespace

std::string_view name_of(Certainty certainty) {
  switch (certainty) {
    case Certainty::Exact:
      return "exact";
    case Certainty::UnknownMedia:
      return "unknown_media";
    case Certainty::Mismatch:
      return "mismatch";
  }
  return "unknown";
}

Result<Prompt> expand(const Rendered& rendered, std::span<const MediaItem> items,
                      const Placeholders& placeholders) {
  if (rendered.tokens.size() > rendered.tokens_max) return too_long(rendered.tokens_max);
  if (!counts_match(rendered, items, placeholders)) {
    return unexpanded(rendered, Certainty::Mismatch);
  }
  Prompt prompt;
  prompt.tokens.reserve(rendered.tokens.size());
  ItemsOf images(items, Modality::Image);
  ItemsOf videos(items, Modality::Video);
  for (std::size_t i = 0; i < rendered.tokens.size(); ++i) {
    const TokenId token = rendered.tokens[i];
    const bool is_image = placeholders.image == token;
    if (!is_image && placeholders.video != token) {
      prompt.tokens.push_back(token);
      continue;
    }
    const std::size_t item = is_image ? images.next() : videos.next();
    const auto length = items[item].tokens;
    if (!length) {
      prompt.exact_tokens = prompt.tokens.size();
      prompt.certainty = Certainty::UnknownMedia;
      prompt.tokens.insert(prompt.tokens.end(), rendered.tokens.begin() + static_cast<long>(i),
                           rendered.tokens.end());
      return prompt;
    }
    const std::size_t left = rendered.tokens.size() - i - 1;
    if (prompt.tokens.size() + *length + left > rendered.tokens_max) {
      return too_long(rendered.tokens_max);
    }
    prompt.spans.push_back({item, prompt.tokens.size(), *length});
    prompt.tokens.insert(prompt.tokens.end(), *length, token);
  }
  prompt.exact_tokens = prompt.tokens.size();
  return prompt;
}

}  // namespace sightline::prompt
