// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/content/bare_identifiers.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace sightline::content {
namespace {

enum class Certainty : std::uint8_t { Sure, Unclear, Contradiction };

bool is_one_of(const std::vector<TokenId>& tokens, std::int64_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// Returns where the runs of a block begin. Returns empty if the block has media that are not one
// run.
std::optional<std::vector<std::int32_t>> runs_of(std::span<const std::int64_t> block,
                                                 const MediaTokens& tokens) {
  std::vector<std::int32_t> starts;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (!is_one_of(tokens.all, block[i])) continue;
    if (!is_one_of(tokens.runs, block[i])) return std::nullopt;
    if (i == 0 || block[i - 1] != block[i]) starts.push_back(static_cast<std::int32_t>(i));
  }
  return starts;
}

class IdentifierReader {
 public:
  IdentifierReader(const AnnouncedContent& told, const MediaTokens& tokens, const ChainStart& place)
      : told_(told), tokens_(tokens), is_first_(place.is_first), open_(place.open) {}

  BareReading read() && {
    for (std::size_t i = 0; i < told_.extras.size(); ++i) {
      const auto certainty = read_block(i);
      if (certainty == Certainty::Contradiction) return {};
      if (certainty == Certainty::Unclear) break;
    }
    return std::move(reading_);
  }

 private:
  Certainty read_block(std::size_t i) {
    const auto& extra = told_.extras[i];
    const auto block = std::span(told_.tokens).subspan(i * told_.block_size, told_.block_size);
    const auto starts = runs_of(block, tokens_);
    if (extra.opaque || !extra.media.empty() || !starts) return Certainty::Unclear;
    // Each block names the adapter before the media. Otherwise the meaning of the strings is not
    // certain.
    if (!starts->empty() && extra.names_lora != told_.lora_name.has_value()) {
      return Certainty::Unclear;
    }
    std::vector<keys::IdentifierHash> ids;
    for (const auto& text : extra.strings) ids.push_back(keys::identifier_hash(text));
    const bool is_first = i == 0 && is_first_;
    if (is_first && ids.size() == starts->size() + 1) {
      // Two items without a token between them are one run with two identifiers. The second one
      // looks like a salt.
      if (std::count(ids.begin(), ids.end(), ids.back()) > 1) return Certainty::Unclear;
      reading_.cache_salt = extra.strings.back();
      ids.pop_back();
    }
    return put(block, *starts, ids);
  }

  // Assigns the items to the runs.
  Certainty put(std::span<const std::int64_t> block, const std::vector<std::int32_t>& starts,
                const std::vector<keys::IdentifierHash>& ids) {
    const bool goes_on = open_ && !starts.empty() && starts.front() == 0;
    // vLLM also lists an item that ended with the block before, if a store begins after that block.
    const bool is_listed_again = open_ && !goes_on && !ids.empty() && ids.front() == open_->id;
    if (ids.size() != starts.size() || is_listed_again) return Certainty::Unclear;
    BareReading::BlockReading out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out.media.push_back({.id = ids[i], .offset = starts[i]});
    }
    if (goes_on) {
      if (ids.front() != open_->id) return Certainty::Contradiction;
      out.media.front().offset = open_->start;
    }
    if (!out.media.empty() && is_one_of(tokens_.runs, block.back())) {
      const auto& last = out.media.back();
      const auto start = std::int64_t{last.offset} - static_cast<std::int64_t>(block.size());
      if (start < std::numeric_limits<std::int32_t>::min()) return Certainty::Unclear;
      out.open = OpenItem{.id = last.id, .start = static_cast<std::int32_t>(start)};
    }
    open_ = out.open;
    reading_.blocks.push_back(std::move(out));
    return Certainty::Sure;
  }

  const AnnouncedContent& told_;
  const MediaTokens& tokens_;
  const bool is_first_;
  std::optional<OpenItem> open_;
  BareReading reading_;
};

}  // namespace

BareReading read_bare_identifiers(const AnnouncedContent& told, const MediaTokens& tokens,
                                  const ChainStart& place) {
  return IdentifierReader(told, tokens, place).read();
}

}  // namespace sightline::content
