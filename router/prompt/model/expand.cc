// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/expand.h"

#include <algorithm>

namespace sightline::model {
namespace {

// The placeholder token of a modality. Absent if the model has no token for it.
std::optional<TokenId> placeholder_of(const Placeholders& placeholders, PlaceholderKind modality) {
  switch (modality) {
    case PlaceholderKind::Image:
      return placeholders.image;
    case PlaceholderKind::Video:
      return placeholders.video;
    case PlaceholderKind::Audio:
      return std::nullopt;
  }
  return std::nullopt;
}

bool counts_match(const Rendered& rendered, std::span<const MediaItem> items,
                  const Placeholders& placeholders) {
  for (const PlaceholderKind modality :
       {PlaceholderKind::Image, PlaceholderKind::Video, PlaceholderKind::Audio}) {
    // The router cannot see which placeholders come from the user's text. It only sees that their
    // number is wrong. A wrong assignment would give wrong block keys, and therefore nothing is
    // claimed then.
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

// Iterates over the items of one modality in their order.
class ItemsOf {
 public:
  ItemsOf(std::span<const MediaItem> items, PlaceholderKind modality)
      : items_(items), modality_(modality) {}

  // Returns the index of the next item. counts_match() has checked that it exists.
  std::size_t next() {
    while (items_[at_].modality != modality_) ++at_;
    return at_++;
  }

 private:
  std::span<const MediaItem> items_;
  PlaceholderKind modality_;
  std::size_t at_ = 0;
};

// The position of the next placeholder, or the number of tokens if no placeholder follows.
std::size_t next_placeholder(std::span<const TokenId> tokens, const Placeholders& placeholders) {
  std::size_t at = 0;
  while (at < tokens.size() && placeholders.image != tokens[at] &&
         placeholders.video != tokens[at]) {
    ++at;
  }
  return at;
}

void append(std::vector<TokenId>& out, std::span<const TokenId> tokens) {
  out.insert(out.end(), tokens.begin(), tokens.end());
}

// The rendered tokens as they are. exact_tokens stays 0, and so no block of the prompt is looked
// up.
Prompt unexpanded(const Rendered& rendered, Certainty certainty) {
  Prompt prompt;
  prompt.tokens.assign(rendered.tokens.begin(), rendered.tokens.end());
  prompt.certainty = certainty;
  return prompt;
}

Error too_long(std::size_t tokens_max) {
  return client_error(
      ErrorCode::TooLarge,
      "the prompt has more than the " + std::to_string(tokens_max) +
          " tokens that this model accepts. Shorten it, or send fewer or smaller images");
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
  ItemsOf images(items, PlaceholderKind::Image);
  ItemsOf videos(items, PlaceholderKind::Video);
  auto rest = rendered.tokens;
  for (;;) {
    // A prompt without items has no placeholders either, by counts_match(). It needs no search.
    const std::size_t at = items.empty() ? rest.size() : next_placeholder(rest, placeholders);
    append(prompt.tokens, rest.first(at));
    if (at == rest.size()) break;
    const TokenId token = rest[at];
    const std::size_t item = placeholders.image == token ? images.next() : videos.next();
    const auto length = items[item].tokens;
    if (!length) {
      // The engine will insert an unknown number of tokens here. All later block keys depend on
      // this number.
      prompt.exact_tokens = prompt.tokens.size();
      prompt.certainty = Certainty::UnknownMedia;
      append(prompt.tokens, rest.subspan(at));
      return prompt;
    }
    rest = rest.subspan(at + 1);
    // This is checked before the insertion, because one item may have a huge number of tokens.
    if (prompt.tokens.size() + *length + rest.size() > rendered.tokens_max) {
      return too_long(rendered.tokens_max);
    }
    prompt.spans.push_back({item, prompt.tokens.size(), *length});
    prompt.tokens.insert(prompt.tokens.end(), *length, token);
  }
  prompt.exact_tokens = prompt.tokens.size();
  return prompt;
}

}  // namespace sightline::model
