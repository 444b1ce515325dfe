// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/contract/identity_key.h"

#include "router/cache/index/exact_index.h"
#include "router/cache/keys/block_key.h"
#include "router/workers/routing/select.h"
#include "tests/support/thread_time.h"

// Method: 1,024 engines. All of them hold the first 64 blocks of the prompt, as for a shared system
// prompt. 8 of them hold the whole prompt.
// - "decide" takes the prompt's tokens and chooses an engine: block keys, index, cost of every
//   engine, choice. One thread. p99 is the CPU time over all iterations.
// - "drop" removes an engine with a million blocks of its own from an index with as many blocks of
//   others.
// - "until_hidden" is the time from that moment until another thread does not see the engine. That
//   thread looks up one of its blocks without pause.
// - "look_up_beside_drop" is the time of look-ups of 512 blocks of the others, on another thread,
//   during the drop and before it.
namespace sightline {
namespace {

constexpr std::uint32_t kEngines = 1'024;
constexpr std::uint32_t kWholeHolders = 8;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::size_t kCommonBlocks = 64;
constexpr std::size_t kDroppedBlocks = 1'000'000;
constexpr std::size_t kLookedUpBlocks = 512;
constexpr int kLookUpsBefore = 20'000;

std::vector<TokenId> prompt(std::size_t tokens) {
  std::vector<TokenId> ids(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<TokenId>(i * 2'654'435'761U % 151'936);
  }
  return ids;
}

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

class Percentile {
 public:
  void add(Duration time) { times_.push_back(time); }
  void report(benchmark::State& state, const std::string& name = "p99_us",
              std::size_t percent = 99) {
    std::sort(times_.begin(), times_.end());
    state.counters[name] = microseconds(times_[(times_.size() - 1) * percent / 100]);
  }

 private:
  std::vector<Duration> times_;
};

routing::Decision decide(const keys::Scheme& scheme, const index::ExactIndex& index,
                         const std::vector<TokenId>& tokens, std::uint64_t turn) {
  const auto blocks = keys::block_keys(scheme, scheme.root({.model = "model"}),
                                       {.tokens = tokens, .media = {}, .block_size = kBlockTokens});
  const auto overlaps = index.match(blocks.keys);
  const routing::Job job{.prompt_tokens = tokens.size(), .block_size = kBlockTokens};
  std::vector<routing::Candidate> candidates(kEngines);
  for (std::uint32_t engine = 0; engine < kEngines; ++engine) {
    candidates[engine].gpu_blocks = overlaps.of(CacheId{engine}).gpu_blocks;
    candidates[engine].in_flight = engine % 7;
  }
  Rng rng(turn);
  const contract::RoutingSettings settings;
  return routing::select(job, candidates, {settings, turn}, rng);
}

void decide(benchmark::State& state) {
  const auto tokens = prompt(static_cast<std::size_t>(state.range(0)));
  const keys::Scheme scheme{contract::development_identity_key()};
  const auto blocks = keys::block_keys(scheme, scheme.root({.model = "model"}),
                                       {.tokens = tokens, .media = {}, .block_size = kBlockTokens});
  index::ExactIndex index;
  for (std::uint32_t engine = 0; engine < kEngines; ++engine) {
    const auto held = engine < kWholeHolders ? blocks.keys.size() : kCommonBlocks;
    index.store(CacheId{engine}, operations::Tier::Gpu, std::span{blocks.keys}.first(held));
  }
  Percentile percentile;
  std::uint64_t turn = 0;
  for (auto unused : state) {
    const Duration start = test::thread_time();
    benchmark::DoNotOptimize(decide(scheme, index, tokens, turn++));
    percentile.add(test::thread_time() - start);
  }
  percentile.report(state);
}

std::vector<keys::BlockKey> own_blocks(std::uint64_t engine) {
  std::vector<keys::BlockKey> blocks(kDroppedBlocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = keys::BlockKey{(engine * kDroppedBlocks + i + 1) * 0x9E37'79B9'7F4A'7C15U >> 3U};
  }
  return blocks;
}

// An index with two engines. One stays, the other comes and goes.
struct TwoEngines {
  TwoEngines() { index.store(CacheId{1}, operations::Tier::Gpu, others); }
  void store() { index.store(CacheId{2}, operations::Tier::Gpu, own); }
  void drop() { index.drop(CacheId{2}); }

  index::ExactIndex index;
  const std::vector<keys::BlockKey> others = own_blocks(1);
  const std::vector<keys::BlockKey> own = own_blocks(2);
};

void drop(benchmark::State& state) {
  TwoEngines engines;
  for (auto unused : state) {
    state.PauseTiming();
    engines.store();
    state.ResumeTiming();
    engines.drop();
  }
}

void until_hidden(benchmark::State& state) {
  TwoEngines engines;
  Percentile percentile;
  for (auto unused : state) {
    engines.store();
    std::atomic<bool> watched = false;
    Instant hidden{};
    std::thread watcher([&] {
      const auto first = std::span{engines.own}.first(1);
      while (engines.index.match(first).of(CacheId{2}).gpu_blocks > 0) watched = true;
      hidden = system_clock().now();
    });
    while (!watched) std::this_thread::yield();
    const Instant start = system_clock().now();
    engines.drop();
    watcher.join();
    percentile.add(hidden - start);
    state.SetIterationTime(microseconds(hidden - start) / 1e6);
  }
  percentile.report(state, "median_us", 50);
  percentile.report(state, "most_us", 100);
}

void look_up_beside_drop(benchmark::State& state) {
  TwoEngines engines;
  Percentile before;
  Percentile beside;
  std::size_t at = 0;
  const auto look_up = [&](Percentile& percentile) {
    at = (at + kLookedUpBlocks) % (engines.others.size() - kLookedUpBlocks);
    const Instant start = system_clock().now();
    benchmark::DoNotOptimize(
        engines.index.match(std::span{engines.others}.subspan(at, kLookedUpBlocks)));
    percentile.add(system_clock().now() - start);
  };
  for (auto unused : state) {
    engines.store();
    for (int i = 0; i < kLookUpsBefore; ++i) look_up(before);
    std::atomic<bool> dropped = false;
    std::thread dropper([&] {
      engines.drop();
      dropped = true;
    });
    while (!dropped) look_up(beside);
    dropper.join();
  }
  before.report(state, "before_p99_us");
  beside.report(state, "beside_p99_us");
}

BENCHMARK(decide)->ArgName("tokens")->Arg(8'192)->Arg(131'072)->Unit(benchmark::kMicrosecond);
BENCHMARK(drop)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(until_hidden)->Unit(benchmark::kMicrosecond)->Iterations(9)->UseManualTime();
BENCHMARK(look_up_beside_drop)->Unit(benchmark::kMillisecond)->Iterations(5);

}  // namespace
}  // namespace sightline
