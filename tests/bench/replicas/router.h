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

// Costs are counted in blocks of this size.
inline constexpr std::uint32_t kBlockTokens = 16;

// The total load that one router has reserved on one engine.
struct ToldLoad {
  std::uint32_t engine = 0;
  fleet::Load load;
};

// One router with its index, its load book and its choice. These are the router's own parts. Only
// the way between processes is simulated.
class SimulatedRouter {
 public:
  struct Options {
    std::uint32_t number = 0;
    std::uint32_t engines = 1;
    std::uint64_t seed = 0;
    contract::RoutingSettings routing = {};
    // How long changed load waits for more before it is sent.
    Duration load_batch = std::chrono::milliseconds(5);
    // Sends load to the other routers. Empty: no other router receives it.
    std::function<void(const std::vector<ToldLoad>&)> tell = {};
  };
  // The timeline outlives the router.
  SimulatedRouter(Options options, Timeline& timeline);

  // Chooses the engine for a request, and reserves its work there until end().
  std::uint32_t choose(std::uint64_t number, const TracedRequest& request);
  void first_token(std::uint64_t number) { open_.at(number).first_token(); }
  void end(std::uint64_t number) { open_.erase(number); }

  // Applies a change of an engine's cache to the index.
  void apply(std::uint32_t engine, const CacheChange& change);
  // Applies the load of another router.
  void hear(const std::string& router, const std::vector<ToldLoad>& told);
  void set_kv_usage(std::uint32_t engine, double usage) { kv_usage_[engine] = usage; }
  // Sends the load of all engines.
  void tell_all();

  [[nodiscard]] const index::ExactIndex& index() const { return index_; }
  // Returns the total load of an engine from all routers.
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
  std::set<std::uint32_t> changed_;  // engines whose load is not sent yet
  fleet::LoadBook book_;
  std::vector<std::shared_ptr<fleet::LoadCell>> cells_;
  std::unordered_map<std::uint64_t, fleet::BookedWork> open_;
};

}  // namespace sightline::quality
