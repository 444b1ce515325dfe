// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// How many tokens a worker's blocks have: by which source, and which source contradicts it. Pure.
namespace sightline::fleet {

// The block size by the events of one rank.
struct AnnouncedBlockSize {
  std::uint32_t tokens = 0;  // of its last events, 0: it has sent no events
  // Its events contradict each other, or the operator's setting.
  bool has_several = false;

  bool operator==(const AnnouncedBlockSize&) const = default;
};

// The sources of a block size, the most trustworthy first.
enum class BlockSizeSource : std::uint8_t {
  Events,    // the worker's own events
  Operator,  // the worker's block_size setting
  // A guess: workers that report the same size have events with this one.
  Others,
  // A guess: what the worker reports beside its events. Workers with context parallelism, or with
  // cache groups of several sizes, report another size than their events have.
  Server,
  Nobody,  // no source
};

// A block size in events, and what it contradicts.
struct BlockSizeConflict {
  // An operator's setting, earlier events of the rank, or the events of another rank.
  enum class With : std::uint8_t { Operator, EarlierEvents, OtherRank };

  With with = With::Operator;
  std::uint32_t told = 0;   // tokens, in the events
  std::uint32_t other = 0;  // tokens, 0 for earlier events, which may have had several sizes

  bool operator==(const BlockSizeConflict&) const = default;
};

// The conflict as one sentence, with a remedy.
std::string reason_of(const BlockSizeConflict& conflict);

// The block size of one worker. All sizes are in tokens, 0 means not known.
class BlockSize {
 public:
  BlockSize() = default;
  // by_operator is the worker's block_size setting, 0 if it is not set.
  explicit BlockSize(std::uint32_t by_operator) : operator_(by_operator) {}

  // The best source that has a size.
  [[nodiscard]] BlockSizeSource source() const;
  // The size by that source.
  [[nodiscard]] std::uint32_t tokens() const;
  // The operator's setting, else the size that the engine reports beside its events.
  [[nodiscard]] std::uint32_t configured() const { return operator_ != 0 ? operator_ : server_; }
  // The operator's setting.
  [[nodiscard]] std::uint32_t by_operator() const { return operator_; }
  // Why blocks of this worker cannot be compared with others. Nothing: they can.
  [[nodiscard]] const std::optional<BlockSizeConflict>& conflict() const { return conflict_; }
  // Whether events with this size contradict configured(), or contradict each other.
  [[nodiscard]] bool is_contradicted_by(const AnnouncedBlockSize& told) const;

  // Takes the size that the engine reports beside its events. It is ignored if it is 0 or if the
  // operator has set one. A new one ends a guess from others.
  void take_from_server(std::uint32_t tokens);
  // Takes the size that workers with the same reported size proved to have.
  void take_from_others(std::uint32_t tokens) { others_ = tokens == server_ ? 0 : tokens; }
  // `tokens` are of the latest events, not 0. `ranks` has the sizes of all ranks, with this one's.
  void take_from_events(std::uint32_t tokens, std::span<const AnnouncedBlockSize> ranks);
  // The server of the events is gone. Their size, and what others' events taught, is dropped.
  void forget_events();

  bool operator==(const BlockSize&) const = default;

 private:
  std::uint32_t operator_ = 0;
  std::uint32_t server_ = 0;
  std::uint32_t others_ = 0;
  std::uint32_t events_ = 0;
  std::optional<BlockSizeConflict> conflict_;
};

// Returns the block size in force, in tokens, 0 if it is not known. It is the size that most of the
// workers certainly have. If several sizes have equally many workers, the present one stays.
// Another size replaces it only if more than half of all these workers have it.
std::uint32_t block_size_in_force(std::span<const BlockSize* const> workers, std::uint32_t now);

// Sets guesses for the workers whose size is not certain. Workers with the same configured size are
// probably started alike. So a guess is the size that most of these certainly have. If another size
// is in force, more than half of all workers with this configured size must have it: one odd engine
// does not change the others. Other workers keep what they have.
void guess_block_sizes(std::span<BlockSize* const> workers, std::uint32_t in_force);

// Returns the size that most workers have, 0 if no size is known. If several have equally many
// workers, it is the one in force, else the first. Blocks of different sizes cannot be compared.
std::uint32_t common_block_size(std::span<const std::uint32_t> workers, std::uint32_t in_force);

// Why a worker with this size cannot be compared with most workers. Empty: it can.
std::string reason_unlike_most(const BlockSize& size, std::uint32_t common);

}  // namespace sightline::fleet
