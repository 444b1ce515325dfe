// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// One opened message of a router on load.
#include "common/base/check.h"
#include "common/base/json.h"

#include "router/replicas/load/others_load.h"
#include "router/replicas/load/own_load.h"
#include "router/replicas/load/taken_names.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {

namespace {

constexpr Instant kNow{std::chrono::hours(1)};
constexpr std::uint64_t kMe = 1;

// Whatever is told by whoever answered us is counted, and is shown.
void check_told(load::Told told) {
  constexpr std::uint64_t kNonce = 77;
  load::OthersLoad others(kMe, [] { return kNonce; }, {.ranks_max = 8});
  others.turn(kNow);
  if (told.snapshot) told.snapshot->nonces = {kNonce};
  others.hear(told, kNow);
  const bool counts = told.instance != kMe && told.snapshot;
  const auto sources = others.sources(kNow);
  SL_CHECK(sources.size() == (counts ? 1U : 0U));
  SL_CHECK(!counts || (sources[0].ranks <= 8 && sources[0].ranks <= told.ranks.size()));
  const auto shown = json::Document::parse(others.json(kNow));
  SL_CHECK(shown.ok() && shown->root().size() == sources.size());
  others.hear(load::Gone{.instance = told.instance}, kNow);
  SL_CHECK(others.sources(kNow).empty());
}

void check_ask(const load::Ask& ask) {
  load::OwnLoad own(kMe, "fuzz");
  own.turn(kNow);
  own.asked(ask);
  const bool is_for_us = ask.asker != kMe && (ask.of == 0 || ask.of == kMe);
  SL_CHECK(own.turn(kNow + std::chrono::milliseconds(20)).size() == (is_for_us ? 1U : 0U));
}

// Of what is booked here, what was taken elsewhere later ends, and nothing else.
void check_taken(const load::Taken& theirs) {
  load::TakenNames taken(kMe);
  std::vector<load::ReservationName> ours;
  for (const auto& [name, turn] : theirs.names) ours.push_back(name);
  taken.take(ours, kNow);
  const auto ended = taken.hear(theirs);
  SL_CHECK(ended.size() <= theirs.names.size());
  SL_CHECK(theirs.instance != kMe || ended.empty());
  for (const std::string& told : taken.tell(load::TakenNames::Again::ToAskers, kNow)) {
    const auto read = load::decode(told);
    SL_CHECK(read.ok() && std::get<load::Taken>(*read).names.size() <= ours.size());
  }
}

}  // namespace

void run(ByteView bytes) {
  // A copy of its own size: a byte read behind it is seen by a sanitizer.
  const Bytes copy(bytes.begin(), bytes.end());
  const auto message = load::decode(text_of(copy));
  if (!message.ok()) {
    SL_CHECK(message.error().blame == Blame::Worker);
    return;
  }
  // What is read has one meaning: written and read again it is the same.
  const std::string written = load::encode(*message);
  SL_CHECK(written.size() == copy.size());
  const auto again = load::decode(written);
  SL_CHECK(again.ok() && *again == *message);
  if (const auto* told = std::get_if<load::Told>(&*message)) {
    SL_CHECK(told->ranks.size() * load::kRankBytes <= copy.size());
    check_told(*told);
  }
  if (const auto* taken = std::get_if<load::Taken>(&*message)) check_taken(*taken);
  if (const auto* ask = std::get_if<load::Ask>(&*message)) check_ask(*ask);
}

}  // namespace sightline::fuzz
