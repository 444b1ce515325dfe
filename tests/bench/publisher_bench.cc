// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// Costs of the agent's end of a stream with 2,000,000 blocks: an operation, a step of a dump, a
// whole dump. `bytes_per_block` is the memory for the blocks, `dump_bytes_per_block` for a dump's
// chunks.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "router/replicas/publisher/frame_publisher.h"

namespace sightline::publisher {
namespace {

using operations::Store;
using operations::Tier;

constexpr std::size_t kBlocks = 2'000'000;
const operations::CacheName kCache{.worker = "w0", .rank = 0, .epoch = 1};

std::unique_ptr<FramePublisher> filled(Rng& rng, std::size_t run_blocks) {
  auto publisher = std::make_unique<FramePublisher>(
      frames::StreamName{.worker = "w0"}, frames::Instance{.name = "agent", .number = 1},
      PublisherOptions{}, [&rng] { return rng.next(); });
  operations::CacheFacts facts;
  facts.health = operations::FeedHealth::Verified;
  Store store{.tier = Tier::Gpu, .parent = {}, .keys = std::vector<keys::BlockKey>(run_blocks)};
  for (std::size_t i = 0; i < kBlocks / run_blocks; ++i) {
    for (auto& key : store.keys) key = {rng.next() >> 3U};
    publisher->take(kCache, store);
  }
  publisher->tell(kCache, facts, {}, system_clock().now());
  return publisher;
}

// Argument: blocks of a store. The same number is removed again.
void take_operations(benchmark::State& state) {
  Rng rng(1);
  const auto publisher = filled(rng, 100);
  const auto run = static_cast<std::size_t>(state.range(0));
  Store store{.tier = Tier::Gpu, .parent = {}, .keys = std::vector<keys::BlockKey>(run)};
  for (auto _ : state) {
    for (auto& key : store.keys) key = {rng.next() >> 3U};
    publisher->take(kCache, store);
    publisher->take(kCache, operations::Remove{.tier = Tier::Gpu, .keys = store.keys});
    benchmark::DoNotOptimize(publisher->take_ready(system_clock().now()));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 2);
}
BENCHMARK(take_operations)->Arg(4)->Arg(100);

// Argument: blocks of each store. Nothing else happens while the dump is made.
void take_dump(benchmark::State& state) {
  Rng rng(1);
  const auto publisher = filled(rng, static_cast<std::size_t>(state.range(0)));
  Duration longest{};
  std::uint64_t asks = 0;
  Instant now = system_clock().now();
  const std::size_t held_bytes = publisher->held().memory_bytes();
  std::size_t before = publisher->memory_bytes();
  for (auto _ : state) {
    now += std::chrono::minutes(5);  // after this time the dump before is not shared or kept
    benchmark::DoNotOptimize(publisher->take_ready(now));
    before = publisher->memory_bytes();
    publisher->hear({.stream = {.worker = "w0"},
                     .body = frames::DumpAsk{.reader = "r",
                                             .epoch = *publisher->epoch(),
                                             .freshness = {.agent = 1, .number = ++asks}}},
                    now);
    while (publisher->is_making_dump()) {
      const Instant begun = system_clock().now();
      publisher->step(now);
      longest = std::max<Duration>(longest, system_clock().now() - begun);
    }
  }
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(longest).count();
  state.counters["longest_step_us"] = static_cast<double>(us);
  state.counters["bytes_per_block"] = static_cast<double>(held_bytes) / kBlocks;
  state.counters["dump_bytes_per_block"] =
      static_cast<double>(publisher->memory_bytes() - before) / kBlocks;
}
BENCHMARK(take_dump)->Arg(1)->Arg(100)->Unit(benchmark::kMillisecond);

// Clears a cache of 2,000,000 blocks.
void clear_all(benchmark::State& state) {
  Rng rng(1);
  for (auto _ : state) {
    state.PauseTiming();
    const auto publisher = filled(rng, 100);
    state.ResumeTiming();
    publisher->take(kCache, operations::Clear{});
  }
}
BENCHMARK(clear_all)->Unit(benchmark::kMillisecond)->Iterations(5);

}  // namespace
}  // namespace sightline::publisher
