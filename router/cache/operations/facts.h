// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace sightline::operations {

// Whether the reader knows all that an engine announced, and if not, why.
enum class FeedHealth : std::uint8_t {
  // The reader never connected to the engine's publisher.
  Waiting,
  // As Waiting, and it cannot connect: another process is bound to the address.
  AddressInUse,
  // Not connected: the publisher's host name has no address.
  NameUnknown,
  // Not connected: no name server answers for the publisher's host name.
  NameUnanswered,
  // The connection is lost. Events since then do not arrive.
  Disconnected,
  // Messages are missing, or the engine may be another process. A replay decides.
  Replaying,
  // The messages are those of another rank. The reader does not apply them.
  OtherRank,
  // The reader applied all that the engine announced.
  Verified,
  // Another process reads the engine, and its facts are not proved. CacheFacts::reason says why.
  ToldBadly,
};

// Returns why the health is not Verified, as one sentence. Empty for Verified.
std::string_view reason_of(FeedHealth health);

// Why an index may lack blocks that an engine holds. If all are false, the index has every block
// that the engine announced since its cache was last empty.
struct MissingBlocks {
  // The reader joined late, lost events, or never received a parent.
  bool forgotten = true;
  // Some blocks cannot be named exactly.
  bool unknown_content = false;
  // The cache has more blocks than the reader remembers.
  bool no_room = false;

  bool operator==(const MissingBlocks&) const = default;
};

// What the reader of an engine's events knows about one cache, beside the blocks in it.
struct CacheFacts {
  FeedHealth health = FeedHealth::Waiting;
  // For ToldBadly: why, as one sentence.
  std::string reason = {};
  // The reader can request a replay of missed events from the engine.
  bool has_replay = false;
  // The index may claim more than the engine holds or reuses: its cache groups differ, or its
  // blocks depend on the token after them.
  std::optional<std::uint32_t> block_size;
  // Another block size in events, which contradicts block_size.
  std::optional<std::uint32_t> block_size_conflict;
  MissingBlocks missing;
  // The replay gives no answer, so the reader lacks the missed events.
  bool replay_silent = false;
  // The index may claim more than the engine holds, because its cache groups differ.
  bool upper_bound = false;
  // The sequence number of the last applied message.
  std::optional<std::uint64_t> sequence;
  // The process that reads the engine was asked to drain its worker.
  bool draining = false;
  // All that the engine announced until then is applied. Empty if unknown.
  std::optional<Instant> caught_up;

  bool operator==(const CacheFacts&) const = default;
};

// Returns why not all of the engine's announcements are known. Empty for Verified.
std::string_view reason_of(const CacheFacts& facts);

}  // namespace sightline::operations
