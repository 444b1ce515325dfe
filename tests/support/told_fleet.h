// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/metrics.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::test {

// A fleet without engines. Each worker serves the model "m" on one rank, and its cache counts as
// verified.
struct ToldFleet {
  static constexpr std::uint32_t kBlockSize = 16;

  ToldFleet(runtime::Metrics& metrics, const Clock& its_clock)
      : clock(its_clock),
        fleet({},
              {[this](const fleet::Worker& worker, const fleet::Rank& rank) {
                 const CacheId cache = rank.feed->cache;
                 caches[worker.spec.name] = cache;
                 fleet.take_facts(cache, {.health = operations::FeedHealth::Verified,
                                          .block_size = kBlockSize,
                                          .sequence = 1});
               },
               [](CacheId) {}, [](CacheId) { return Instant{}; }},
              metrics, its_clock) {}

  // `more` is the part of its spec beside name and url. `models` are served beside "m".
  void add(const std::string& name, const std::string& more = "",
           std::vector<fleet::ServedModel> models = {}) {
    specs.push_back(
        *contract::parse_worker("name=" + name + ",url=http://" + name + ":8000" + more));
    fleet.set_workers(specs);
    fleet::Probe probe;
    models.push_back({.id = "m", .parent = ""});
    probe.models = std::move(models);
    probe.sources = std::vector<fleet::EventSource>{
        {.rank = 0, .enabled = true, .endpoint = "tcp://*:5557", .replay_endpoint = ""}};
    probe.load = fleet::ServerLoad{.block_size = kBlockSize, .ranks = {{.number = 0}}};
    fleet.apply_probe(specs.back(), probe);
  }
  // The booked load of the worker's only rank.
  [[nodiscard]] fleet::Load load(const std::string& worker) const {
    return fleet.snapshot()->find(worker)->ranks[0].load->read(clock.now());
  }

  const Clock& clock;
  std::map<std::string, CacheId> caches;  // by worker
  std::vector<contract::WorkerSpec> specs;
  fleet::Fleet fleet;
};

}  // namespace sightline::test
