// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/contract/serve_settings.h"

#include "router/cache/index/exact_index.h"
#include "router/workers/fleet/load_book.h"
#include "tests/bench/replicas/engine.h"
#include "tests/bench/replicas/timeline.h"
#include "tests/bench/replicas/trace.h"

namespace sightline::quality {

// The blocks that costs are counted in.
inline constexpr std::uint32_t kBlockTokens = 16;

// What one router booked on one engine, all of it.
struct ToldLoad {
  std::uint32_t engine = 0;
  fleet::Load load;
};

// One router: its index, its load book, its choice. Index, book and rule are the router's own
// parts; only what lies between processes is simulated.
class SimulatedRouter {
 public:
  struct Options {
    std::uint32_t number = 0;
    std::uint32_t engines = 1;
    std::uint64_t seed = 0;
    contract::RoutingSettings routing = {};
    // Batches what is booked for so long before it is told.
    Duration load_batch = std::chrono::milliseconds(5);
    // Empty: the router tells nobody.
    std::function<void(const std::vector<ToldLoad>&)> tell = {};
  };
  // The timeline outlives it.
  SimulatedRouter(Options options, Timeline& timeline);

  // The engine for a request, whose work is booked there until end().
  std::uint32_t choose(std::uint64_t number, const TracedRequest& request);
  void first_token(std::uint64_t number) { open_.at(number).first_token(); }
  void end(std::uint64_t number) { open_.erase(number); }

  void apply(std::uint32_t engine, const CacheChange& change);
  void hear(const std::string& router, const std::vector<ToldLoad>& told);
  void set_kv_usage(std::uint32_t engine, double usage) { kv_usage_[engine] = usage; }
  // Tells all that is booked.
  void tell_all();

  [[nodiscard]] const index::ExactIndex& index() const { return index_; }
  // All that is booked on an engine, by whomever.
  [[nodiscard]] fleet::Load load(std::uint32_t engine) const {
    return cells_[engine]->read(timeline_.now());
  }

 private:
  void booked(const std::string& engine);
  void tell_changed();

  const Options options_;
  Timeline& timeline_;
  Rng rng_;
  std::uint64_t turn_ = 0;
  index::ExactIndex index_;
  std::vector<double> kv_usage_;
  std::map<std::string, std::uint32_t> engines_;
  std::set<std::uint32_t> changed_;  // not told yet
  fleet::LoadBook book_;
  std::vector<std::shared_ptr<fleet::LoadCell>> cells_;
  std::unordered_map<std::uint64_t, fleet::BookedWork> open_;
};

}  // namespace sightline::quality
