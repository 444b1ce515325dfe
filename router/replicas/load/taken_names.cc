// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/taken_names.h"

#include <algorithm>
#include <tuple>

namespace sightline::load {

void TakenNames::take(std::vector<ReservationName> names, Instant now) {
  if (names.empty()) return;
  turn_ = std::min(turn_ + 1, kTurnMax);
  for (ReservationName& name : names) {
    takings_[{name.instance, name.number}] = {.attempt = name.attempt, .turn = turn_};
    log_.push_back({.taken = {.name = std::move(name), .turn = turn_}, .at = now});
  }
  statistics_.taken += names.size();
  untold_ += names.size();
  while (log_.size() > options_.names_max) forget_first();
}

std::vector<ReservationName> TakenNames::hear(const Takeover& taken) {
  std::vector<ReservationName> ended;
  if (taken.instance == me_) return ended;
  for (const auto& [name, turn] : taken.names) {
    // Also the turns of names that are not booked here: the next takeover must be above all of
    // them.
    turn_ = std::max(turn_, turn);
    const auto place = takings_.find({name.instance, name.number});
    if (place != takings_.end()) {
      const Taking& ours = place->second;
      const bool ours_is_later =
          std::tie(ours.attempt, ours.turn, me_) > std::tie(name.attempt, turn, taken.instance);
      // The other router receives our takeover and ends its own booking.
      if (ours_is_later) continue;
      takings_.erase(place);
    }
    // Also names without a takeover here: a booking of an earlier attempt may exist.
    ended.push_back(name);
  }
  statistics_.ended += ended.size();
  return ended;
}

bool TakenNames::stands(const TakenName& taken) const {
  const auto place = takings_.find({taken.name.instance, taken.name.number});
  return place != takings_.end() && place->second.attempt == taken.name.attempt &&
         place->second.turn == taken.turn;
}

void TakenNames::forget_first() {
  // A later takeover of the same number stays.
  const TakenName& first = log_.front().taken;
  if (stands(first)) takings_.erase({first.name.instance, first.name.number});
  if (untold_ == log_.size()) {
    --untold_;
    ++statistics_.forgotten;
  }
  log_.pop_front();
}

std::vector<std::string> TakenNames::tell(Again again, Instant now) {
  // The oldest entries expire first, because times only grow.
  while (!log_.empty() && now - log_.front().at >= options_.remembered) forget_first();
  std::size_t from = log_.size() - untold_;
  if (again != Again::Nothing) {
    const Duration age_max =
        again == Again::ToAskers ? options_.told_to_askers : options_.told_again;
    while (from > 0 && now - log_[from - 1].at < age_max) --from;
  }
  untold_ = 0;
  return written(from);
}

std::vector<std::string> TakenNames::written(std::size_t from) const {
  std::vector<std::string> messages;
  Takeover part{.instance = me_, .names = {}};
  std::size_t bytes = kTakenOverheadBytes;
  const auto end_part = [&] {
    if (!part.names.empty()) messages.push_back(encode(part));
    part.names.clear();
    bytes = kTakenOverheadBytes;
  };
  for (std::size_t i = from; i < log_.size(); ++i) {
    const TakenName& taken = log_[i].taken;
    // A replaced takeover would end a booking that counts.
    if (!stands(taken)) continue;
    const std::size_t more = encoded_bytes(taken);
    if (bytes + more > options_.message_bytes_max) end_part();
    bytes += more;
    part.names.push_back(taken);
  }
  end_part();
  return messages;
}

}  // namespace sightline::load
