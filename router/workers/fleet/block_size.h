// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// How many tokens a worker's blocks have, who says so, and who contradicts. Pure.
namespace sightline::fleet {

// As the events of one rank tell it.
struct AnnouncedBlockSize {
  std::uint32_t tokens = 0;  // by its last events, 0: none came
  bool has_several = false;  // its events contradict each other or the operator

  bool operator==(const AnnouncedBlockSize&) const = default;
};

// Who says it, the most trustworthy first.
enum class BlockSizeSource : std::uint8_t {
  Events,    // the worker's own
  Operator,  // who configured it
  Others,    // a guess: workers whose servers tell the same have events that tell this
  Server,    // a guess: what the worker tells beside its events. Workers whose cache groups have
             // several sizes, or whose context is parallel, tell one and announce another
  Nobody,
};

// What the events tell, and what they contradict.
struct BlockSizeConflict {
  enum class With : std::uint8_t { Operator, EarlierEvents, OtherRank };

  With with = With::Operator;
  std::uint32_t told = 0;   // tokens
  std::uint32_t other = 0;  // tokens; 0 for earlier events, which may have told several

  bool operator==(const BlockSizeConflict&) const = default;
};

// One sentence, with what to do about it.
std::string reason_of(const BlockSizeConflict& conflict);

// The block size of one worker. Sizes are in tokens, 0: not known.
class BlockSize {
 public:
  BlockSize() = default;
  explicit BlockSize(std::uint32_t by_operator) : operator_(by_operator) {}

  [[nodiscard]] BlockSizeSource source() const;
  // As its source says.
  [[nodiscard]] std::uint32_t tokens() const;
  // As the operator says, else as the engine tells beside its events.
  [[nodiscard]] std::uint32_t configured() const { return operator_ != 0 ? operator_ : server_; }
  [[nodiscard]] std::uint32_t by_operator() const { return operator_; }
  // Why blocks of this worker cannot be compared with anything; nothing: they can.
  [[nodiscard]] const std::optional<BlockSizeConflict>& conflict() const { return conflict_; }
  // True: this is another size than the configured one, or one of several.
  [[nodiscard]] bool is_contradicted_by(const AnnouncedBlockSize& told) const;

  // What the worker tells beside its events; 0 is no news, nor is anything if the operator knows
  // better. Takes back a guess from others.
  void take_from_server(std::uint32_t tokens);
  // What workers whose servers tell the same turned out to have.
  void take_from_others(std::uint32_t tokens) { others_ = tokens == server_ ? 0 : tokens; }
  // What events have just told (not 0), and what those of all ranks tell, this one's included.
  void take_from_events(std::uint32_t tokens, std::span<const AnnouncedBlockSize> ranks);
  // The events are those of a server that is gone: what they told, or taught others, is void.
  void forget_events();

  bool operator==(const BlockSize&) const = default;

 private:
  std::uint32_t operator_ = 0;
  std::uint32_t server_ = 0;
  std::uint32_t others_ = 0;
  std::uint32_t events_ = 0;
  std::optional<BlockSizeConflict> conflict_;
};

// The size in force from now on, as workers have it for sure: what most of these have, of equally
// many the one in force. Another one takes its place once more than half of so many workers have
// it. Tokens; 0: none is known.
std::uint32_t block_size_in_force(std::span<const BlockSize* const> workers, std::uint32_t now);

// Workers that only guess are taken to have what most of those have for sure whose configured size
// is the same: workers are started alike. Where another size is in force, more than half of all
// that are configured alike must have it: one engine that announces another size teaches nobody.
// Others keep what they have.
void guess_block_sizes(std::span<BlockSize* const> workers, std::uint32_t in_force);

// The size that most workers have; of equally many the one in force, else the first; 0 if none is
// known. Blocks of different sizes cannot be compared.
std::uint32_t common_block_size(std::span<const std::uint32_t> workers, std::uint32_t in_force);

// Why a worker with this size cannot be compared with most; empty: it can.
std::string reason_unlike_most(const BlockSize& size, std::uint32_t common);

}  // namespace sightline::fleet
