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

// What routers tell each other about the work that they booked. Plain values.
namespace sightline::load {

// All that a router has booked on a rank: a total, so that a lost message is healed by the next.
struct RankLoad {
  fleet::RankName rank;
  fleet::Load load;  // recent_prefill_blocks: when it was told

  bool operator==(const RankLoad&) const = default;
};

// That a message is part of a snapshot. The parts follow each other without anything between.
struct Part {
  std::uint32_t number = 0;  // below count
  std::uint32_t count = 1;
  std::vector<std::uint64_t> nonces;  // of the asks that it answers, at most kNoncesMax

  bool operator==(const Part&) const = default;
};

// Router to all: totals of some ranks. A snapshot names all ranks that have any work.
struct Told {
  std::uint64_t instance = 0;  // of the router, drawn when it starts
  std::string name;            // of the router, for people; UTF-8, at most frames::kNameBytesMax
  std::uint64_t seq = 0;       // from 1 on, of all these messages of the instance
  std::optional<Part> snapshot;
  std::vector<RankLoad> ranks;

  bool operator==(const Told&) const = default;
};

// Router to all: tell everything, and this number with it.
struct Ask {
  std::uint64_t asker = 0;  // its instance
  std::uint64_t of = 0;     // the instance that is asked; 0: all
  std::uint64_t nonce = 0;  // drawn anew: who tells it has heard the ask

  bool operator==(const Ask&) const = default;
};

// Router to all: it ends and has nothing booked.
struct Gone {
  std::uint64_t instance = 0;

  bool operator==(const Gone&) const = default;
};

// A reservation as its caller names it.
struct ReservationName {
  std::string instance;  // of the caller, at most frames::kNameBytesMax
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;

  bool operator==(const ReservationName&) const = default;
};

// A reservation that is booked at a router although another one may have it: what others have
// booked under its number, up to this attempt, counts no more.
struct TakenName {
  ReservationName name;
  std::uint64_t turn = 0;  // of the taking: above all that the router had heard or told till then

  bool operator==(const TakenName&) const = default;
};

// Router to all: reservations that it has taken. May come late, twice and in any order.
struct Taken {
  std::uint64_t instance = 0;  // of the router
  std::vector<TakenName> names;

  bool operator==(const Taken&) const = default;
};

using Message = std::variant<Told, Ask, Gone, Taken>;

inline constexpr std::size_t kNoncesMax = 64;
// Most that is read for one rank; far above what engines take, and far from overflow when the
// totals of all routers are added.
inline constexpr std::uint32_t kInFlightMax = 1U << 24U;
inline constexpr std::uint64_t kAmountMax = 1ULL << 40U;
// Largest message without its ranks: kind, instance, name, seq, part with its nonces, count.
inline constexpr std::size_t kToldOverheadBytesMax =
    1 + 8 + 2 + frames::kNameBytesMax + 8 + 1 + 4 + 4 + 4 + 8 * kNoncesMax + 4;
// A rank without its worker's name: length, rank, four amounts.
inline constexpr std::size_t kRankBytes = 2 + 4 + 4 + 8 + 8 + 8;
// Of Taken: kind, instance, count; a name without its caller's: length, number, attempt, turn.
inline constexpr std::size_t kTakenOverheadBytes = 1 + 8 + 4;
inline constexpr std::size_t kTakenNameBytes = 2 + 8 + 4 + 8;
// Far above what takings reach, and far from overflow.
inline constexpr std::uint64_t kTurnMax = 1ULL << 62U;

// Integers little-endian, lengths in front of what they count, doubles as their bits. Amounts above
// those that are read are told as these.
std::string encode(const Message& message);

// Nothing is allocated before its bytes are there: a message takes at most some 4 times its size.
// Errors: Corrupt (not a message, bytes behind it, amounts that no rank can have), TooLarge; blamed
// on the worker.
Result<Message> decode(std::string_view bytes);

// What the rank, or the name, takes in a message.
inline std::size_t encoded_bytes(const RankLoad& rank) {
  return kRankBytes + rank.rank.worker.size();
}
inline std::size_t encoded_bytes(const TakenName& name) {
  return kTakenNameBytes + name.name.instance.size();
}

}  // namespace sightline::load
