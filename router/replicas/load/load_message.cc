// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/load_message.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/bytes.h"
#include "common/base/check.h"

namespace sightline::load {

namespace {

using frames::FieldReader;
using frames::FieldWriter;

constexpr std::size_t kMessageBytesMax = frames::kMessageBytesMax;

// Everything but an amount counts as 0: infinities, NaN, negative numbers.
double plain(double blocks) {
  return std::isfinite(blocks) && blocks > 0 ? std::min(blocks, static_cast<double>(kAmountMax))
                                             : 0.0;
}

// The limits of decode() apply here too. An impossible total would make others reject the whole
// message.
void write(FieldWriter& out, const RankLoad& rank) {
  out.name(rank.rank.worker);
  out.integer(rank.rank.rank);
  out.integer(std::min(rank.load.in_flight, kInFlightMax));
  out.integer(std::min(rank.load.prefill_tokens, kAmountMax));
  out.integer(std::min(rank.load.blocks, kAmountMax));
  out.integer(std::bit_cast<std::uint64_t>(plain(rank.load.recent_prefill_blocks)));
}

RankLoad read_rank(FieldReader& in) {
  RankLoad rank;
  rank.rank.worker = in.name();
  rank.rank.rank = in.integer<std::uint32_t>();
  fleet::Load& load = rank.load;
  load.in_flight = in.integer<std::uint32_t>();
  load.prefill_tokens = in.integer<std::uint64_t>();
  load.blocks = in.integer<std::uint64_t>();
  const auto recent = std::bit_cast<double>(in.integer<std::uint64_t>());
  load.recent_prefill_blocks = plain(recent);
  // Totals above the limits could overflow when they are added to others.
  const bool is_possible = load.in_flight <= kInFlightMax && load.prefill_tokens <= kAmountMax &&
                           load.blocks <= kAmountMax && load.recent_prefill_blocks == recent;
  if (!is_possible) in.fail();
  return rank;
}

void write(FieldWriter& out, const SnapshotPart& part) {
  SL_CHECK(part.nonces.size() <= kNoncesMax);
  out.integer(part.number);
  out.integer(part.count);
  out.integer(static_cast<std::uint32_t>(part.nonces.size()));
  for (const auto nonce : part.nonces) out.integer(nonce);
}

SnapshotPart read_part(FieldReader& in) {
  SnapshotPart part;
  part.number = in.integer<std::uint32_t>();
  part.count = in.integer<std::uint32_t>();
  const std::size_t nonces = in.count(sizeof(std::uint64_t));
  // Later code subtracts the part's number from the sequence number.
  if (part.number >= part.count || nonces > kNoncesMax) {
    in.fail();
    return {};
  }
  part.nonces.resize(nonces);
  for (auto& nonce : part.nonces) nonce = in.integer<std::uint64_t>();
  return part;
}

void write(FieldWriter& out, const LoadReport& told) {
  out.integer(told.instance);
  out.name(told.name);
  out.integer(told.seq);
  out.flag(told.snapshot.has_value());
  if (told.snapshot) write(out, *told.snapshot);
  out.integer(static_cast<std::uint32_t>(told.ranks.size()));
  for (const RankLoad& rank : told.ranks) write(out, rank);
}

LoadReport read_told(FieldReader& in) {
  LoadReport told;
  told.instance = in.integer<std::uint64_t>();
  told.name = in.name();
  told.seq = in.integer<std::uint64_t>();
  if (in.flag()) told.snapshot = read_part(in);
  // The parts of a snapshot are consecutive, so its first part has at least the number 1.
  const std::uint64_t parts_before = told.snapshot ? told.snapshot->number : 0;
  if (told.seq <= parts_before || !is_utf8(told.name)) in.fail();
  // Ranks are read one by one: no memory is reserved for an announced count.
  const std::size_t count = in.count(kRankBytes);
  for (std::size_t i = 0; i < count && !in.is_broken(); ++i) told.ranks.push_back(read_rank(in));
  return told;
}

void write(FieldWriter& out, const LoadAsk& ask) {
  out.integer(ask.asker);
  out.integer(ask.of);
  out.integer(ask.nonce);
}

void write(FieldWriter& out, const Leave& gone) { out.integer(gone.instance); }

void write(FieldWriter& out, const Takeover& taken) {
  out.integer(taken.instance);
  out.integer(static_cast<std::uint32_t>(taken.names.size()));
  for (const auto& [name, turn] : taken.names) {
    out.name(name.instance);
    out.integer(name.number);
    out.integer(name.attempt);
    out.integer(std::min(turn, kTurnMax));
  }
}

Takeover read_taken(FieldReader& in) {
  Takeover taken;
  taken.instance = in.integer<std::uint64_t>();
  const std::size_t count = in.count(kTakenNameBytes);
  for (std::size_t i = 0; i < count && !in.is_broken(); ++i) {
    TakenName taken_name;
    taken_name.name.instance = in.name();
    taken_name.name.number = in.integer<std::uint64_t>();
    taken_name.name.attempt = in.integer<std::uint32_t>();
    taken_name.turn = in.integer<std::uint64_t>();
    // A turn near the maximum would leave no higher one for any router.
    if (taken_name.turn > kTurnMax) in.fail();
    taken.names.push_back(std::move(taken_name));
  }
  return taken;
}

// The cases are the indexes of the types in Message.
Message read_body(FieldReader& in) {
  switch (in.one_of(3)) {
    case 0:
      return read_told(in);
    case 1: {
      LoadAsk ask;
      ask.asker = in.integer<std::uint64_t>();
      ask.of = in.integer<std::uint64_t>();
      ask.nonce = in.integer<std::uint64_t>();
      return ask;
    }
    case 2:
      return Leave{.instance = in.integer<std::uint64_t>()};
    default:
      return read_taken(in);
  }
}

}  // namespace

std::string encode(const Message& message) {
  FieldWriter out;
  out.integer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { write(out, body); }, message);
  return out.take();
}

Result<Message> decode(std::string_view bytes) {
  if (bytes.size() > kMessageBytesMax) {
    return worker_error(ErrorCode::TooLarge, "a router's load message is larger than the limit",
                        false);
  }
  FieldReader in(bytes);
  Message message = read_body(in);
  // Bytes behind the message break the format as well.
  if (!in.is_whole()) {
    return worker_error(ErrorCode::Corrupt, "a router's load message is malformed", false);
  }
  return message;
}

}  // namespace sightline::load
