// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace sightline::operations {

// Whether all that an engine announced is known, and why not.
enum class FeedHealth : std::uint8_t {
  Waiting,         // never connected to its publisher
  AddressInUse,    // nor can it be: somebody else is bound where it is to connect to
  NameUnknown,     // not connected: there is no address for its host's name
  NameUnanswered,  // likewise, because no name server answers
  Disconnected,    // the connection is lost: what happens there is not heard
  Replaying,       // messages are missing, or it may be another process: a replay will tell
  OtherRank,       // its messages are those of another rank: they are not applied
  Verified,        // all that was announced is applied
  ToldBadly,       // another process reads the engine, and what it tells is not proved: see reason
};

// Why not, as one sentence; empty when it is.
std::string_view reason_of(FeedHealth health);

// Why an index may lack blocks that an engine holds. All false: it has every block that the engine
// announced since its cache was last empty.
struct MissingBlocks {
  bool forgotten = true;         // joined late, events lost, or a parent never announced
  bool unknown_content = false;  // blocks that cannot be named exactly
  bool no_room = false;          // more blocks than are remembered

  bool operator==(const MissingBlocks&) const = default;
};

// What is known of one cache beside the blocks that it holds. Told by whoever reads its engine's
// events.
struct CacheFacts {
  FeedHealth health = FeedHealth::Waiting;
  std::string reason = {};  // of ToldBadly: why, as one sentence
  bool has_replay = false;  // whoever reads the engine can ask it for what was missed
  std::optional<std::uint32_t> block_size;           // tokens; of the events, else configured
  std::optional<std::uint32_t> block_size_conflict;  // its events contradict that one
  MissingBlocks missing;
  bool replay_silent = false;  // what was missed is not had: the replay gives no answer
  bool upper_bound = false;    // more may be claimed than is held: its cache groups differ
  std::optional<std::uint64_t> sequence;  // of the last message applied
  // Whoever reads the engine was told to have its worker drained.
  bool draining = false;
  // All that was announced until then is applied. Nothing: not known.
  std::optional<Instant> caught_up;

  bool operator==(const CacheFacts&) const = default;
};

// Why not all that its engine announced is known; empty when it is.
std::string_view reason_of(const CacheFacts& facts);

}  // namespace sightline::operations
