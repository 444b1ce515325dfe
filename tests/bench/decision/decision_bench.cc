// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/contract/identity_key.h"

#include "router/index/exact_index.h"
#include "router/keys/block_key.h"
#include "router/routing/select.h"

// Method: 1,024 engines. All of them hold the first 64 blocks of the prompt, as a shared system
// prompt; 8 of them hold it to its end. "decide" takes its tokens to the chosen engine: block
// keys, index, cost of every engine, choice. "drop" takes away an engine with a million blocks of
// its own from an index that holds as much of others. One thread. p99 is the CPU
// time over all iterations.
namespace sightline {
namespace {

constexpr std::uint32_t kEngines = 1'024;
constexpr std::uint32_t kWholeHolders = 8;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::size_t kCommonBlocks = 64;
constexpr std::size_t kDroppedBlocks = 1'000'000;

std::vector<TokenId> prompt(std::size_t tokens) {
  std::vector<TokenId> ids(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<TokenId>(i * 2'654'435'761U % 151'936);
  }
  return ids;
}

// CPU time, so that other programs on the machine do not count.
Duration thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class Percentile {
 public:
  void add(Duration time) { times_.push_back(time); }
  void report(benchmark::State& state) {
    std::sort(times_.begin(), times_.end());
    const auto p99 = times_[(times_.size() - 1) * 99 / 100];
    state.counters["p99_us"] = std::chrono::duration<double, std::micro>(p99).count();
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
    candidates[engine].gpu_blocks = overlaps.of(EngineId{engine}).gpu_blocks;
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
    index.store(EngineId{engine}, index::Tier::Gpu, std::span{blocks.keys}.first(held));
  }
  Percentile percentile;
  std::uint64_t turn = 0;
  for (auto unused : state) {
    const Duration start = thread_time();
    benchmark::DoNotOptimize(decide(scheme, index, tokens, turn++));
    percentile.add(thread_time() - start);
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

void drop(benchmark::State& state) {
  index::ExactIndex index;
  const auto others = own_blocks(1);
  const auto own = own_blocks(2);
  index.store(EngineId{1}, index::Tier::Gpu, others);
  for (auto unused : state) {
    state.PauseTiming();
    index.store(EngineId{2}, index::Tier::Gpu, own);
    state.ResumeTiming();
    index.drop(EngineId{2});
  }
}

BENCHMARK(decide)->ArgName("tokens")->Arg(8'192)->Arg(131'072)->Unit(benchmark::kMicrosecond);
BENCHMARK(drop)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace sightline
