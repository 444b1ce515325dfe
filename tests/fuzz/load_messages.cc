// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Decodes one opened message about load, and applies it as a router does.
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

// Checks that totals from a router that answered this one are counted and shown.
void check_told(load::LoadReport told) {
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
  others.hear(load::Leave{.instance = told.instance}, kNow);
  SL_CHECK(others.sources(kNow).empty());
}

void check_ask(const load::LoadAsk& ask) {
  load::OwnLoad own(kMe, "fuzz");
  own.turn(kNow);
  own.asked(ask);
  const bool is_for_us = ask.asker != kMe && (ask.of == 0 || ask.of == kMe);
  SL_CHECK(own.turn(kNow + std::chrono::milliseconds(20)).size() == (is_for_us ? 1U : 0U));
}

// Checks that a reservation booked here ends if another router took it later, and no other one
// ends.
void check_taken(const load::Takeover& theirs) {
  load::TakenNames taken(kMe);
  std::vector<load::ReservationName> ours;
  for (const auto& [name, turn] : theirs.names) ours.push_back(name);
  taken.take(ours, kNow);
  const auto ended = taken.hear(theirs);
  SL_CHECK(ended.size() <= theirs.names.size());
  SL_CHECK(theirs.instance != kMe || ended.empty());
  for (const std::string& told : taken.tell(load::TakenNames::Again::ToAskers, kNow)) {
    const auto read = load::decode(told);
    SL_CHECK(read.ok() && std::get<load::Takeover>(*read).names.size() <= ours.size());
  }
}

}  // namespace

void run(ByteView bytes) {
  // A copy of its own size lets a sanitizer detect a read behind its end.
  const Bytes copy(bytes.begin(), bytes.end());
  const auto message = load::decode(text_of(copy));
  if (!message.ok()) {
    SL_CHECK(message.error().blame == Blame::Worker);
    return;
  }
  // A message has one meaning: an encoded copy decodes to the same value.
  const std::string written = load::encode(*message);
  SL_CHECK(written.size() == copy.size());
  const auto again = load::decode(written);
  SL_CHECK(again.ok() && *again == *message);
  if (const auto* told = std::get_if<load::LoadReport>(&*message)) {
    SL_CHECK(told->ranks.size() * load::kRankBytes <= copy.size());
    check_told(*told);
  }
  if (const auto* taken = std::get_if<load::Takeover>(&*message)) check_taken(*taken);
  if (const auto* ask = std::get_if<load::LoadAsk>(&*message)) check_ask(*ask);
}

}  // namespace sightline::fuzz
