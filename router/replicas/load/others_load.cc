// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/others_load.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::load {

namespace {

// Routers that ended or fell silent lately. Their messages may still be on their way, or an
// attacker may send them again.
constexpr std::size_t kPastMax = 256;
constexpr std::uint64_t kNothingCounts = std::numeric_limits<std::uint64_t>::max();

std::string source_of(std::uint64_t instance) { return to_hex(instance); }

std::string source_json(const OthersLoad::RouterLoad& source) {
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(source.age);
  return R"({"name":)" + json::to_quoted(source.name) + R"(,"instance":")" +
         to_hex(source.instance) + R"(","whole":)" + (source.whole ? "true" : "false") +
         R"(,"capped":)" + (source.capped ? "true" : "false") + R"(,"ranks":)" +
         std::to_string(source.ranks) + R"(,"requests":)" + std::to_string(source.load.in_flight) +
         R"(,"prefill_tokens":)" + std::to_string(source.load.prefill_tokens) + R"(,"blocks":)" +
         std::to_string(source.load.blocks) + R"(,"heard_ms":)" + std::to_string(age.count()) + "}";
}

}  // namespace

std::string_view name_of(LeftAside reason) {
  constexpr std::array<std::string_view, kLeftAsideCount> kNames = {"own",   "late",    "stranger",
                                                                    "ended", "no-room", "no-ranks"};
  return kNames.at(static_cast<std::size_t>(reason));
}

OthersLoad::OthersLoad(std::uint64_t me, std::function<std::uint64_t()> draw, OthersOptions options)
    : me_(me), draw_(std::move(draw)), options_(options) {
  asking_all_.pause = options_.ask_pause;
}

void OthersLoad::connected(Instant now) {
  strangers_ = true;
  asking_all_ = {.due = now, .pause = options_.ask_pause};
  // One request to all comes first. Single requests follow only if it does not help.
  missed(now + options_.ask_pause);
}

void OthersLoad::missed(Instant now) {
  for (auto& [instance, sender] : senders_) {
    sender.whole = false;
    sender.snapshot = 0;
    sender.asking = {.due = now, .pause = options_.ask_pause};
  }
}

void OthersLoad::leave_aside(LeftAside reason) {
  ++statistics_.left_aside.at(static_cast<std::size_t>(reason));
}

bool OthersLoad::has_our_nonce(const LoadReport& told, Instant now) const {
  if (!told.snapshot) return false;
  const auto& theirs = told.snapshot->nonces;
  return std::any_of(nonces_.begin(), nonces_.end(), [&](const Nonce& nonce) {
    // A number counts for a limited time. An old answer could be a recording.
    return now - nonce.drawn_at < options_.silent_after &&
           std::find(theirs.begin(), theirs.end(), nonce.value) != theirs.end();
  });
}

void OthersLoad::hear(const LoadReport& told, Instant now) {
  expire(now);
  if (told.instance == me_) return leave_aside(LeftAside::Own);
  const std::uint64_t past = past_seq(told.instance);
  if (past == kNothingCounts) return leave_aside(LeftAside::Ended);
  // A recorded message of a router that fell silent must not revive it.
  if (told.seq <= past) return leave_aside(LeftAside::Late);
  const auto place = senders_.find(told.instance);
  Sender* sender = place == senders_.end() ? believe(told, now) : &place->second;
  if (sender == nullptr) return;
  if (told.seq <= sender->seq) return leave_aside(LeftAside::Late);
  apply(*sender, told, now);
}

OthersLoad::Sender* OthersLoad::believe(const LoadReport& told, Instant now) {
  if (senders_.size() >= options_.sources_max) {
    leave_aside(LeftAside::NoRoom);
    return nullptr;
  }
  if (!has_our_nonce(told, now)) {
    leave_aside(LeftAside::Stranger);
    strangers_ = true;
    return nullptr;
  }
  ++statistics_.believed;
  asking_all_.pause = options_.ask_pause;
  Sender& sender = senders_[told.instance];
  // This message is the next one, so it is no gap.
  sender.seq = told.seq - 1;
  // The other parts of the snapshot are on their way.
  sender.asking = {.due = now + options_.ask_pause, .pause = options_.ask_pause};
  return &sender;
}

void OthersLoad::apply(Sender& sender, const LoadReport& told, Instant now) {
  ++statistics_.heard;
  const bool is_gap = told.seq != sender.seq + 1;
  if (is_gap) {
    ++statistics_.gaps;
    sender.whole = false;
  }
  sender.seq = told.seq;
  sender.name = told.name;
  sender.heard_at = now;
  const std::string source = source_of(told.instance);
  const bool begins = told.snapshot && told.snapshot->number == 0;
  if (begins) {
    sender.snapshot = told.seq;
    sender.capped = false;
    // The snapshot's end makes a request unnecessary. It gets this time to arrive.
    sender.asking.due = std::max(sender.asking.due, now + options_.ask_pause);
    // A gap, or a message outside of the snapshot, ends the snapshot.
  } else if (is_gap || !told.snapshot) {
    sender.snapshot = 0;
  }
  for (const RankLoad& rank : told.ranks) set(sender, source, told, rank);
  calls_.emplace_back(HearSource{source});
  const bool is_last = told.snapshot && told.snapshot->number + 1 == told.snapshot->count;
  // Only a snapshot without a missing part proves which ranks have no work.
  if (is_last && sender.snapshot == told.seq - told.snapshot->number) {
    end_snapshot(sender, source);
  }
}

void OthersLoad::set(Sender& sender, const std::string& source, const LoadReport& told,
                     const RankLoad& rank) {
  // An idle rank takes no place.
  const bool is_idle = rank.load == fleet::Load{};
  if (is_idle) {
    if (sender.ranks.erase(rank.rank) == 0) return;
  } else {
    const auto place = sender.ranks.find(rank.rank);
    if (place == sender.ranks.end() && sender.ranks.size() >= options_.ranks_max) {
      sender.capped = true;
      return leave_aside(LeftAside::NoRanks);
    }
    sender.ranks[rank.rank] = {.load = rank.load, .seq = told.seq};
  }
  calls_.emplace_back(SetOthers{source, rank});
}

void OthersLoad::end_snapshot(Sender& sender, const std::string& source) {
  // A rank that the snapshot did not name has no work.
  const std::uint64_t first = sender.snapshot;
  for (auto place = sender.ranks.begin(); place != sender.ranks.end();) {
    if (place->second.seq >= first) {
      ++place;
      continue;
    }
    calls_.emplace_back(SetOthers{source, {.rank = place->first, .load = {}}});
    place = sender.ranks.erase(place);
  }
  ++statistics_.snapshots;
  sender.snapshot = 0;
  sender.whole = true;
  sender.asking = {.due = {}, .pause = options_.ask_pause};
}

void OthersLoad::hear(const Leave& gone, Instant now) {
  expire(now);
  if (gone.instance == me_) return leave_aside(LeftAside::Own);
  // Also of unknown routers: a message of theirs may arrive after this one.
  remember(gone.instance, kNothingCounts);
  if (!senders_.contains(gone.instance)) return;
  ++statistics_.ended;
  forget(gone.instance);
}

bool OthersLoad::hear(const Takeover& taken, Instant now) {
  expire(now);
  if (senders_.contains(taken.instance)) return true;
  if (taken.instance == me_) {
    leave_aside(LeftAside::Own);
  } else if (past_seq(taken.instance) == kNothingCounts) {
    leave_aside(LeftAside::Ended);
  } else {
    leave_aside(LeftAside::Stranger);
    strangers_ = true;
  }
  return false;
}

std::uint64_t OthersLoad::past_seq(std::uint64_t instance) const {
  const auto past = std::find_if(past_.begin(), past_.end(),
                                 [=](const Past& one) { return one.instance == instance; });
  return past == past_.end() ? 0 : past->seq;
}

void OthersLoad::remember(std::uint64_t instance, std::uint64_t seq) {
  std::erase_if(past_, [=](const Past& one) { return one.instance == instance; });
  past_.push_back({.instance = instance, .seq = seq});
  if (past_.size() > kPastMax) past_.pop_front();
}

void OthersLoad::forget(std::uint64_t instance) {
  senders_.erase(instance);
  calls_.emplace_back(ForgetSource{source_of(instance)});
}

void OthersLoad::expire(Instant now) {
  std::vector<Past> silent;
  for (const auto& [instance, sender] : senders_) {
    if (now - sender.heard_at >= options_.silent_after) silent.push_back({instance, sender.seq});
  }
  statistics_.silent += silent.size();
  // Otherwise recorded messages of a gone router, sent again one by one, would keep its load
  // counted.
  for (const Past& past : silent) {
    remember(past.instance, past.seq);
    forget(past.instance);
  }
}

OthersLoad::Actions OthersLoad::turn(Instant now) {
  expire(now);
  Actions turn{.calls = std::exchange(calls_, {}), .asks = {}};
  if (strangers_ && now >= asking_all_.due) {
    turn.asks.push_back(ask(0, asking_all_, now));
    strangers_ = false;  // until a stranger's message arrives again
  }
  for (auto& [instance, sender] : senders_) {
    if (sender.whole || now < sender.asking.due) continue;
    turn.asks.push_back(ask(instance, sender.asking, now));
  }
  return turn;
}

LoadAsk OthersLoad::ask(std::uint64_t of, Asking& asking, Instant now) {
  ++statistics_.asks;
  asking.due = now + asking.pause;
  asking.pause = std::min(2 * asking.pause, options_.ask_pause_max);
  return {.asker = me_, .of = of, .nonce = nonce(now)};
}

// Requests within silent_after / 2 have the same number. So answers that arrive late, to an earlier
// request, count too.
std::uint64_t OthersLoad::nonce(Instant now) {
  if (nonces_.empty() || now - nonces_.back().drawn_at >= options_.silent_after / 2) {
    nonces_.push_back({.value = draw_(), .drawn_at = now});
    if (nonces_.size() > 2) nonces_.pop_front();
  }
  return nonces_.back().value;
}

Instant OthersLoad::due() const {
  // Calls of the load book are due immediately.
  if (!calls_.empty()) return Instant{};
  Instant due = Instant::max();
  if (strangers_) due = asking_all_.due;
  for (const auto& [instance, sender] : senders_) {
    due = std::min(due, sender.heard_at + options_.silent_after);
    if (!sender.whole) due = std::min(due, sender.asking.due);
  }
  return due;
}

std::vector<OthersLoad::RouterLoad> OthersLoad::sources(Instant now) const {
  std::vector<RouterLoad> sources;
  for (const auto& [instance, sender] : senders_) {
    RouterLoad source{.instance = instance,
                      .name = sender.name,
                      .whole = sender.whole,
                      .capped = sender.capped,
                      .ranks = sender.ranks.size(),
                      .load = {},
                      .age = now - sender.heard_at};
    for (const auto& [name, rank] : sender.ranks) source.load += rank.load;
    sources.push_back(source);
  }
  return sources;
}

std::string OthersLoad::json(Instant now) const {
  std::string out = "[";
  for (const RouterLoad& source : sources(now)) {
    if (out.size() > 1) out += ",";
    out += source_json(source);
  }
  return out + "]";
}

std::optional<fleet::Load> OthersLoad::told(std::uint64_t instance,
                                            const fleet::RankName& rank) const {
  const auto sender = senders_.find(instance);
  if (sender == senders_.end()) return std::nullopt;
  const auto place = sender->second.ranks.find(rank);
  if (place == sender->second.ranks.end()) return std::nullopt;
  return place->second.load;
}

}  // namespace sightline::load
