// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/result.h"

#include "router/replicas/frames/fields.h"
#include "router/workers/fleet/load.h"

// Messages between routers about the work that they have booked. All types are plain values.
namespace sightline::load {

// All that a router has booked on a rank. It is a total, so the next message repairs a lost one.
struct RankLoad {
  fleet::RankName rank;
  // recent_prefill_blocks: as of the sending.
  fleet::Load load;
  bool operator==(const RankLoad&) const = default;
};

// Marks a message as a part of a snapshot. The parts have consecutive sequence numbers.
struct SnapshotPart {
  std::uint32_t number = 0;  // below count.
  std::uint32_t count = 1;
  // Of the answered requests, at most kNoncesMax.
  std::vector<std::uint64_t> nonces;
  bool operator==(const SnapshotPart&) const = default;
};

// Router to all: totals of some ranks. A snapshot names all ranks that have any work.
struct LoadReport {
  // Of the router, random, drawn when it starts.
  std::uint64_t instance = 0;
  // Of the router, for people. UTF-8, at most frames::kNameBytesMax.
  std::string name;
  // From 1 on, over all of these messages of the instance.
  std::uint64_t seq = 0;
  std::optional<SnapshotPart> snapshot;
  std::vector<RankLoad> ranks;
  bool operator==(const LoadReport&) const = default;
};

// Router to all: send all totals, and this number with them.
struct LoadAsk {
  // The instance that asks.
  std::uint64_t asker = 0;
  // The asked instance, 0 means all.
  std::uint64_t of = 0;
  // Random. A router that sends it back has received the request, so its message is not a
  // recording.
  std::uint64_t nonce = 0;
  bool operator==(const LoadAsk&) const = default;
};

// Router to all: it ends and has nothing booked.
struct Leave {
  std::uint64_t instance = 0;
  bool operator==(const Leave&) const = default;
};

// A reservation, as the frontend that made it names it.
struct ReservationName {
  // Of the frontend, at most frames::kNameBytesMax.
  std::string instance;
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  bool operator==(const ReservationName&) const = default;
};

// A reservation booked at a router although another router may have booked it too. What others have
// booked under its number, up to this attempt, ends.
struct TakenName {
  ReservationName name;
  // The turn of the takeover. It is above all turns that the router had received or sent before.
  std::uint64_t turn = 0;
  bool operator==(const TakenName&) const = default;
};

// Router to all: reservations that it has taken over. The message may come late, twice and in any
// order.
struct Takeover {
  std::uint64_t instance = 0;  // of the router
  std::vector<TakenName> names;
  bool operator==(const Takeover&) const = default;
};

// The index of a message is its first byte on the wire.
using Message = std::variant<LoadReport, LoadAsk, Leave, Takeover>;

// The most requests that one snapshot answers.
inline constexpr std::size_t kNoncesMax = 64;
// The largest amounts that decode() accepts for one rank. They are far above what engines take, and
// the totals of all routers can be added without overflow.
inline constexpr std::uint32_t kInFlightMax = 1U << 24U;
inline constexpr std::uint64_t kAmountMax = 1ULL << 40U;
// The largest message without its ranks: kind, instance, name, seq, part with nonces, count.
inline constexpr std::size_t kToldOverheadBytesMax =
    1 + 8 + 2 + frames::kNameBytesMax + 8 + 1 + 4 + 4 + 4 + 8 * kNoncesMax + 4;
// A rank without its worker's name: length, rank, four amounts.
inline constexpr std::size_t kRankBytes = 2 + 4 + 4 + 8 + 8 + 8;
// Of Takeover: kind, instance, count. Then a name without its frontend's: length, number, attempt,
// turn.
inline constexpr std::size_t kTakenOverheadBytes = 1 + 8 + 4;
inline constexpr std::size_t kTakenNameBytes = 2 + 8 + 4 + 8;
// Far above the number of takeovers of any run, and far from overflow.
inline constexpr std::uint64_t kTurnMax = 1ULL << 62U;

// Returns the wire form. Integers are little-endian, lengths come before what they count, doubles
// are sent as their bits. Larger amounts than decode() accepts are sent as the largest accepted
// ones.
std::string encode(const Message& message);

// Reads what encode() wrote. It allocates nothing before the bytes for it are there. So a message
// takes about 4 times its size in memory, at most.
// Errors: Corrupt if the bytes are no message, if more bytes follow it, or if an amount is
// impossible. TooLarge above frames::kMessageBytesMax. Both blame the worker and are not worth a
// retry.
Result<Message> decode(std::string_view bytes);

// The bytes that a rank or a name takes in a message.
inline std::size_t encoded_bytes(const RankLoad& rank) {
  return kRankBytes + rank.rank.worker.size();
}
inline std::size_t encoded_bytes(const TakenName& name) {
  return kTakenNameBytes + name.name.instance.size();
}

}  // namespace sightline::load
