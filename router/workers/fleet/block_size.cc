// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/block_size.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace sightline::fleet {
namespace {

std::optional<BlockSizeConflict> conflict_among(std::uint32_t by_operator,
                                                std::span<const AnnouncedBlockSize> ranks) {
  using With = BlockSizeConflict::With;
  std::uint32_t before = 0;  // of the ranks before
  for (const AnnouncedBlockSize& rank : ranks) {
    const std::uint32_t told = rank.tokens;
    // Ranks without events say nothing.
    if (told == 0) continue;
    if (by_operator != 0 && by_operator != told) {
      return BlockSizeConflict{With::Operator, told, by_operator};
    }
    if (rank.has_several) return BlockSizeConflict{With::EarlierEvents, told, 0};
    if (before != 0 && before != told) return BlockSizeConflict{With::OtherRank, told, before};
    before = told;
  }
  return std::nullopt;
}

// The workers with one configured size.
struct Alike {
  std::size_t workers = 0;
  // The certain sizes in tokens, in the order of the workers.
  std::vector<std::uint32_t> known = {};
  std::uint32_t guess = 0;  // in tokens, 0: no worker knows
};

bool is_of_more_than_half(std::uint32_t tokens, std::span<const std::uint32_t> known,
                          std::size_t workers) {
  const auto count = std::count(known.begin(), known.end(), tokens);
  return 2 * static_cast<std::size_t>(count) > workers;
}

std::uint32_t guess_of(std::uint32_t configured, const Alike& alike, std::uint32_t in_force) {
  const std::uint32_t most = common_block_size(alike.known, in_force);
  // Most of the group decides, unless it contradicts the size in force without a majority of the
  // group.
  const bool is_taught = most == 0 || in_force == 0 || most == in_force ||
                         is_of_more_than_half(most, alike.known, alike.workers);
  return is_taught ? most : configured;
}

bool is_guess(const BlockSize& size) {
  return size.source() != BlockSizeSource::Events && size.source() != BlockSizeSource::Operator;
}

}  // namespace

std::string reason_of(const BlockSizeConflict& conflict) {
  const std::string told =
      "its KV events have blocks of " + std::to_string(conflict.told) + " tokens, ";
  switch (conflict.with) {
    case BlockSizeConflict::With::Operator:
      return told + "but this worker has block_size=" + std::to_string(conflict.other) +
             ": correct or remove block_size";
    case BlockSizeConflict::With::EarlierEvents:
      return told + "earlier events had another size: restart the engine with one block size";
    case BlockSizeConflict::With::OtherRank:
      return told + "those of another data-parallel rank have " + std::to_string(conflict.other) +
             ": start all ranks with the same --block-size";
  }
  return told;
}

BlockSizeSource BlockSize::source() const {
  if (events_ != 0) return BlockSizeSource::Events;
  if (operator_ != 0) return BlockSizeSource::Operator;
  if (others_ != 0) return BlockSizeSource::Others;
  return server_ != 0 ? BlockSizeSource::Server : BlockSizeSource::Nobody;
}

std::uint32_t BlockSize::tokens() const {
  switch (source()) {
    case BlockSizeSource::Events:
      return events_;
    case BlockSizeSource::Operator:
      return operator_;
    case BlockSizeSource::Others:
      return others_;
    case BlockSizeSource::Server:
    case BlockSizeSource::Nobody:
      return server_;
  }
  return 0;
}

bool BlockSize::is_contradicted_by(const AnnouncedBlockSize& told) const {
  return told.has_several || (configured() != 0 && configured() != told.tokens);
}

void BlockSize::take_from_server(std::uint32_t tokens) {
  if (operator_ != 0 || tokens == 0) return;
  server_ = tokens;
  // Certain sizes need no guess. A guess from workers with another reported size is wrong now.
  if (events_ == 0) others_ = 0;
}

void BlockSize::take_from_events(std::uint32_t tokens, std::span<const AnnouncedBlockSize> ranks) {
  events_ = tokens;
  // Events of this worker are better than any guess.
  others_ = 0;
  conflict_ = conflict_among(operator_, ranks);
}

void BlockSize::forget_events() {
  events_ = others_ = 0;
  conflict_.reset();
}

std::uint32_t block_size_in_force(std::span<const BlockSize* const> workers, std::uint32_t now) {
  std::vector<std::uint32_t> known;
  for (const BlockSize* worker : workers) {
    if (!is_guess(*worker)) known.push_back(worker->tokens());
  }
  const std::uint32_t most = common_block_size(known, now);
  // Another size needs more than half of all these workers, so one odd worker changes nothing.
  return now == 0 || is_of_more_than_half(most, known, workers.size()) ? most : now;
}

void guess_block_sizes(std::span<BlockSize* const> workers, std::uint32_t in_force) {
  std::map<std::uint32_t, Alike> groups;  // by the configured size
  for (const BlockSize* worker : workers) {
    if (worker->configured() == 0) continue;
    Alike& alike = groups[worker->configured()];
    ++alike.workers;
    if (!is_guess(*worker)) alike.known.push_back(worker->tokens());
  }
  for (auto& [configured, alike] : groups) alike.guess = guess_of(configured, alike, in_force);
  for (BlockSize* worker : workers) {
    const auto alike = groups.find(worker->configured());
    if (!is_guess(*worker) || alike == groups.end() || alike->second.guess == 0) continue;
    worker->take_from_others(alike->second.guess);
  }
}

std::uint32_t common_block_size(std::span<const std::uint32_t> workers, std::uint32_t in_force) {
  // A list, not a map: of equally many the first worker's size wins.
  std::vector<std::pair<std::uint32_t, std::size_t>> counts;  // in the order of the workers
  for (const std::uint32_t tokens : workers) {
    if (tokens == 0) continue;
    auto count = std::find_if(counts.begin(), counts.end(),
                              [tokens](const auto& c) { return c.first == tokens; });
    if (count == counts.end()) count = counts.insert(counts.end(), {tokens, 0});
    ++count->second;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [&](const auto& a, const auto& b) {
        return a.second != b.second ? a.second < b.second : b.first == in_force;
      });
  return most == counts.end() ? 0 : most->first;
}

std::string reason_unlike_most(const BlockSize& size, std::uint32_t common) {
  if (common == 0 || size.tokens() == common) return {};
  return "its blocks have " + std::to_string(size.tokens()) +
         " tokens, those of most workers have " + std::to_string(common) +
         ": start all engines with the same --block-size";
}

}  // namespace sightline::fleet
