// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/content/block_content.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sightline::content {

void BlockContent::begin(const AnnouncedContent& told, const ChainStart& place) {
  told_ = &told;
  is_first_ = place.is_first;
  bare_.reset();
  tells_offsets_ = tells_offsets_ || told.offsets_stated;
  // If an engine states offsets, a string without offset is never a media identifier.
  if (tells_offsets_ || told.extras.empty()) return;
  bare_ = read_bare_identifiers(told, rules_.media, place);
}

std::optional<keys::BlockKey> BlockContent::root() const {
  // Without its name, blocks of different adapters would get the same key.
  if (told_->lora_unnamed) return std::nullopt;
  keys::KeyScope scope{
      .model = rules_.model, .cache_salt = told_->cache_salt, .lora = told_->lora_name};
  std::optional<std::string> salt;
  if (bare_) {
    salt = bare_->cache_salt;
  } else if (!told_->extras.empty() && !told_->extras[0].strings.empty()) {
    const auto& strings = told_->extras[0].strings;
    if (strings.size() != 1 || (!told_->offsets_stated && has_media_token(0))) {
      return std::nullopt;
    }
    salt = strings[0];
  }
  // Two different salts contradict each other, so the content is not certain.
  if (salt && scope.cache_salt && scope.cache_salt != salt) return std::nullopt;
  if (salt) scope.cache_salt = std::move(salt);
  return scheme_.root(scope);
}

std::optional<keys::BlockKey> BlockContent::key_of(std::size_t i, keys::BlockKey parent) {
  if (told_->unclear || !read_tokens(i) || !read_media(i)) return std::nullopt;
  return scheme_.next(parent, scheme_.local(block_tokens_, block_media_));
}

std::optional<OpenItem> BlockContent::open_after(std::size_t i) const {
  return bare_ && i < bare_->blocks.size() ? bare_->blocks[i].open : std::nullopt;
}

std::span<const std::int64_t> BlockContent::tokens_of(std::size_t i) const {
  return std::span(told_->tokens).subspan(i * told_->block_size, told_->block_size);
}

bool BlockContent::has_media_token(std::size_t i) const {
  const auto block = tokens_of(i);
  return std::any_of(block.begin(), block.end(), [this](std::int64_t token) {
    const auto& media = rules_.media.all;
    return std::find(media.begin(), media.end(), token) != media.end();
  });
}

bool BlockContent::read_tokens(std::size_t i) {
  constexpr std::int64_t kTokenIds = std::int64_t{std::numeric_limits<TokenId>::max()} + 1;
  const std::int64_t bound =
      rules_.vocabulary_size > 0 ? std::int64_t{rules_.vocabulary_size} : kTokenIds;
  block_tokens_.clear();
  for (const auto token : tokens_of(i)) {
    if (token < 0 || token >= bound) return false;
    block_tokens_.push_back(static_cast<TokenId>(token));
  }
  return true;
}

bool BlockContent::read_media(std::size_t i) {
  block_media_.clear();
  if (bare_) {
    if (i >= bare_->blocks.size()) return false;
    block_media_ = bare_->blocks[i].media;
    return true;
  }
  if (!told_->extras.empty()) {
    const auto& extra = told_->extras[i];
    if (extra.opaque) return false;
    // On the prompt's first block, a string without offset is the salt. Elsewhere it is a media
    // identifier of an old encoding.
    if (!extra.strings.empty() && (i > 0 || !is_first_)) return false;
    for (const auto& media : extra.media) {
      const auto offset = static_cast<std::int32_t>(media.offset);
      if (offset != media.offset) return false;
      block_media_.push_back({.id = media.id, .offset = offset});
    }
  }
  // A placeholder without an item is text that the user typed, or an item that the event does not
  // name.
  return !block_media_.empty() || !has_media_token(i);
}

}  // namespace sightline::content
