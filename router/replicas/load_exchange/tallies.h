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

// The metrics of the exchange, brought up to date from what its parts have counted.
// Thread safety: none.
class Tallies {
 public:
  explicit Tallies(runtime::Metrics& metrics);

  void lost() const { lost_.add(); }
  // A message that could not be read.
  void left_aside(std::string_view reason) const;
  void taken_left_out(std::uint64_t names) const;

  struct Now {
    load::OwnLoad::Statistics own;
    load::OthersLoad::Statistics others;
    load::TakenNames::Statistics taken;
    std::size_t sources = 0;
    Duration age{};  // since the one that was silent for longest was heard
  };
  void count(const Now& now);

 private:
  runtime::Metrics& metrics_;
  runtime::Counter sent_, heard_, lost_, told_snapshots_, heard_snapshots_, gaps_;
  runtime::Counter asks_left_out_, silent_, ended_;
  runtime::Counter taken_, superseded_, forgotten_;
  std::array<runtime::Counter, load::kLeftAsideCount> left_aside_;
  runtime::Gauge sources_, age_;
  Now counted_;
};

}  // namespace sightline::load_exchange
