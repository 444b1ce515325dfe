// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"

#include "router/replicas/load/others_load.h"
#include "router/replicas/load/own_load.h"
#include "router/replicas/load/taken_names.h"

namespace sightline::load_exchange {

// The metrics of the exchange. count() raises them by what its parts have counted since the last
// call.
// Thread safety: one thread at a time.
class Tallies {
 public:
  // `metrics` outlives this object.
  explicit Tallies(runtime::Metrics& metrics);

  // NATS lost messages.
  void lost() const { lost_.add(); }
  // A message could not be opened or decoded.
  void left_aside(std::string_view reason) const;
  // Takeovers found no room in the queue.
  void taken_left_out(std::uint64_t names) const;

  // The present counts of the parts.
  struct Now {
    load::OwnLoad::OwnStatistics own;
    load::OthersLoad::OthersStatistics others;
    load::TakenNames::TakeoverStatistics taken;
    std::size_t sources = 0;
    // The longest silence of a source.
    Duration age{};
  };
  // Raises the metrics to these counts.
  void count(const Now& now);

 private:
  runtime::Metrics& metrics_;
  runtime::Counter sent_, heard_, lost_, told_snapshots_, heard_snapshots_, gaps_;
  runtime::Counter asks_left_out_, silent_, ended_;
  runtime::Counter taken_, superseded_, forgotten_;
  std::array<runtime::Counter, load::kLeftAsideCount> left_aside_;
  runtime::Gauge sources_, age_;
  // The counts that the metrics contain so far.
  Now counted_;
};

}  // namespace sightline::load_exchange
