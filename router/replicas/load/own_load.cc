// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/own_load.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/check.h"

namespace sightline::load {

namespace {

using fleet::LoadChange;

// Recent work below this changes no decision. A rank with less is not sent any more.
constexpr double kNoBlocks = 1.0 / 1024;

// The longest prefix that can be sent.
std::string told_name(const std::string& name) {
  return std::string(utf8_prefix(name, frames::kNameBytesMax));
}

bool is_idle(const fleet::Load& load) { return load == fleet::Load{}; }

// The totals stay in range even if a caller reports a step twice: no amount falls below 0 or wraps.
template <class Amount>
Amount sum(Amount amount, std::int64_t more) {
  if (more >= 0) return fleet::saturating_sum(amount, static_cast<Amount>(more));
  // -more would overflow for the least number.
  const auto less = static_cast<std::uint64_t>(-(more + 1)) + 1;
  return less > amount ? 0 : static_cast<Amount>(amount - less);
}

}  // namespace

OwnLoad::OwnLoad(std::uint64_t instance, std::string name, OwnOptions options)
    : instance_(instance), name_(told_name(std::move(name))), options_(options) {
  SL_CHECK(instance_ != 0);
  SL_CHECK(options_.message_bytes_max >= kMessageBytesMin);
}

Delta delta_of(const LoadChange& change) {
  // Bounded here as in the load book, so both count the same amounts.
  const fleet::Booking booking = change.booking.bounded();
  const auto prefill_tokens = static_cast<std::int64_t>(booking.prefill_tokens);
  const auto blocks = static_cast<std::int64_t>(booking.blocks);
  switch (change.step) {
    case LoadChange::Step::Reserved:
      return {.in_flight = 1,
              .prefill_tokens = prefill_tokens,
              .prefill_blocks = booking.prefill_blocks()};
    case LoadChange::Step::FirstToken:
      // The prompt is computed: its tokens become blocks in decode.
      return {.prefill_tokens = -prefill_tokens, .blocks = blocks};
    case LoadChange::Step::Ended:
      break;
  }
  if (change.had_first_token) return {.in_flight = -1, .blocks = -blocks};
  return {.in_flight = -1, .prefill_tokens = -prefill_tokens};
}

void OwnLoad::take(const fleet::RankName& rank, const Delta& delta, Instant now) {
  Total& total = totals_[rank];
  fleet::Load& load = total.load;
  load.in_flight = sum(load.in_flight, delta.in_flight);
  load.prefill_tokens = sum(load.prefill_tokens, delta.prefill_tokens);
  load.blocks = sum(load.blocks, delta.blocks);
  if (delta.prefill_blocks > 0) total.recent.add(delta.prefill_blocks, now);
  changed_.insert(rank);
}

void OwnLoad::set_message_bytes_max(std::size_t bytes) {
  SL_CHECK(bytes >= kMessageBytesMin);
  options_.message_bytes_max = bytes;
}

void OwnLoad::asked(const LoadAsk& ask) {
  const bool is_for_us = ask.asker != instance_ && (ask.of == 0 || ask.of == instance_);
  if (!is_for_us) return;
  // A repeated request needs no second answer.
  if (std::find(nonces_.begin(), nonces_.end(), ask.nonce) != nonces_.end()) return;
  // The number of nonces in a message is limited. The asker repeats its request.
  if (nonces_.size() >= kNoncesMax) {
    ++statistics_.asks_left_out;
    return;
  }
  nonces_.push_back(ask.nonce);
}

bool OwnLoad::is_snapshot_due(Instant now) const {
  return now >= snapshot_due_ || (!nonces_.empty() && now >= answer_due_);
}

std::vector<std::string> OwnLoad::turn(Instant now) {
  if (is_snapshot_due(now)) return tell_all(now);
  if (!changed_.empty() && now >= changes_due_) return tell_changed(now);
  return {};
}

Instant OwnLoad::due() const {
  Instant due = snapshot_due_;
  if (!nonces_.empty()) due = std::min(due, answer_due_);
  if (!changed_.empty()) due = std::min(due, changes_due_);
  return due;
}

std::vector<std::string> OwnLoad::tell_all(Instant now) {
  // Idle ranks leave the totals only with a snapshot. Readers take a missing rank of a snapshot as
  // idle.
  std::vector<RankLoad> ranks;
  for (auto place = totals_.begin(); place != totals_.end();) {
    const bool is_forgotten =
        is_idle(place->second.load) && place->second.recent.at(now) < kNoBlocks;
    if (is_forgotten) {
      place = totals_.erase(place);
      continue;
    }
    ranks.push_back(told_of(place->first, place->second, now));
    ++place;
  }
  std::vector<LoadReport> parts = parted(std::move(ranks));
  ++statistics_.snapshots;
  if (!nonces_.empty()) ++statistics_.answers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].snapshot = SnapshotPart{.number = static_cast<std::uint32_t>(i),
                                     .count = static_cast<std::uint32_t>(parts.size()),
                                     .nonces = nonces_};
  }
  // A snapshot answers all open requests and contains all changes.
  nonces_.clear();
  changed_.clear();
  changes_due_ = now + options_.batch;
  snapshot_due_ = now + options_.snapshot_interval;
  answer_due_ = now + options_.answer_pause;
  return send(std::move(parts));
}

std::vector<std::string> OwnLoad::tell_changed(Instant now) {
  std::vector<RankLoad> ranks;
  for (const fleet::RankName& rank : std::exchange(changed_, {})) {
    ranks.push_back(told_of(rank, totals_.at(rank), now));
  }
  changes_due_ = now + options_.batch;
  return send(parted(std::move(ranks)));
}

std::vector<LoadReport> OwnLoad::parted(std::vector<RankLoad> ranks) const {
  std::vector<LoadReport> parts(1);
  // The overhead includes the longest name and all nonces, so the last rank always fits.
  std::size_t bytes = kToldOverheadBytesMax;
  for (RankLoad& rank : ranks) {
    const std::size_t more = encoded_bytes(rank);
    if (bytes + more > options_.message_bytes_max) {
      parts.emplace_back();
      bytes = kToldOverheadBytesMax;
    }
    bytes += more;
    parts.back().ranks.push_back(std::move(rank));
  }
  return parts;
}

std::vector<std::string> OwnLoad::send(std::vector<LoadReport> parts) {
  std::vector<std::string> messages;
  messages.reserve(parts.size());
  for (LoadReport& part : parts) {
    part.instance = instance_;
    part.name = name_;
    part.seq = ++seq_;
    messages.push_back(encode(std::move(part)));
  }
  statistics_.messages += messages.size();
  return messages;
}

RankLoad OwnLoad::told_of(const fleet::RankName& rank, const Total& total, Instant now) {
  RankLoad told{.rank = rank, .load = total.load};
  told.load.recent_prefill_blocks = total.recent.at(now);
  return told;
}

}  // namespace sightline::load
