// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load_exchange/tallies.h"

#include <chrono>

#include "common/contract/metrics_load.h"

namespace sightline::load_exchange {
namespace {

static_assert(static_cast<int>(load::LeftAside::Own) == 0);

// Metrics are counters that only rise, the statistics are totals.
void add(const runtime::Counter& counter, std::uint64_t before, std::uint64_t now) {
  if (now > before) counter.add(static_cast<double>(now - before));
}

}  // namespace

Tallies::Tallies(runtime::Metrics& metrics)
    : metrics_(metrics),
      sent_(metrics.counter(contract::kLoadMessagesTotal, {"out"})),
      heard_(metrics.counter(contract::kLoadMessagesTotal, {"in"})),
      lost_(metrics.counter(contract::kLoadGapsTotal, {"nats"})),
      told_snapshots_(metrics.counter(contract::kLoadSnapshotsTotal, {"out"})),
      heard_snapshots_(metrics.counter(contract::kLoadSnapshotsTotal, {"in"})),
      gaps_(metrics.counter(contract::kLoadGapsTotal, {"sequence"})),
      asks_left_out_(metrics.counter(contract::kLoadLeftAsideTotal, {"asks-max"})),
      silent_(metrics.counter(contract::kLoadSourcesGoneTotal, {"silent"})),
      ended_(metrics.counter(contract::kLoadSourcesGoneTotal, {"ended"})),
      taken_(metrics.counter(contract::kLoadTakenTotal, {"here"})),
      superseded_(metrics.counter(contract::kLoadTakenTotal, {"elsewhere"})),
      forgotten_(metrics.counter(contract::kLoadTakenTotal, {"untold"})),
      sources_(metrics.gauge(contract::kLoadSources)),
      age_(metrics.gauge(contract::kLoadSourceAgeSeconds)) {
  // Without LeftAside::Own: NATS returns each of our messages to us, which is normal.
  for (std::size_t i = 1; i < left_aside_.size(); ++i) {
    const auto reason = load::name_of(static_cast<load::LeftAside>(i));
    left_aside_[i] = metrics.counter(contract::kLoadLeftAsideTotal, {reason});
  }
}

void Tallies::left_aside(std::string_view reason) const {
  metrics_.counter(contract::kLoadLeftAsideTotal, {reason}).add();
}

void Tallies::taken_left_out(std::uint64_t names) const { add(forgotten_, 0, names); }

void Tallies::count(const Now& now) {
  add(sent_, counted_.own.messages, now.own.messages);
  add(told_snapshots_, counted_.own.snapshots, now.own.snapshots);
  add(asks_left_out_, counted_.own.asks_left_out, now.own.asks_left_out);
  add(heard_, counted_.others.heard, now.others.heard);
  add(heard_snapshots_, counted_.others.snapshots, now.others.snapshots);
  add(gaps_, counted_.others.gaps, now.others.gaps);
  add(silent_, counted_.others.silent, now.others.silent);
  add(ended_, counted_.others.ended, now.others.ended);
  add(taken_, counted_.taken.taken, now.taken.taken);
  add(superseded_, counted_.taken.ended, now.taken.ended);
  add(forgotten_, counted_.taken.forgotten, now.taken.forgotten);
  for (std::size_t i = 1; i < left_aside_.size(); ++i) {
    add(left_aside_[i], counted_.others.left_aside[i], now.others.left_aside[i]);
  }
  sources_.set(static_cast<double>(now.sources));
  age_.set(std::chrono::duration<double>(now.age).count());
  counted_ = now;
}

}  // namespace sightline::load_exchange
