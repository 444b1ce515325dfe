// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "router/index/exact_index.h"

// Method: an index of 8 engines with 1,000 prompts of 512 blocks each on every engine; the first
// 64 blocks are common to all prompts. Look-ups go through the prompts in turn, one thread, no
// writer at the same time. "per_block" is the time of one block of the prompt.
namespace sightline::index {
namespace {

constexpr std::size_t kEngines = 8;
constexpr std::size_t kPrompts = 1'000;
constexpr std::size_t kBlocks = 512;
constexpr std::size_t kCommonBlocks = 64;

using Prompt = std::vector<keys::BlockKey>;

Prompt prompt(std::uint64_t number) {
  Prompt blocks;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t chain = i < kCommonBlocks ? 0 : number + 1;
    blocks.push_back(keys::BlockKey{(chain * kBlocks + i) * 0x9E37'79B9'7F4A'7C15U >> 3U});
  }
  return blocks;
}

struct Filled {
  std::vector<Prompt> prompts;
  ExactIndex index;

  Filled() {
    for (std::size_t i = 0; i < kPrompts; ++i) prompts.push_back(prompt(i));
    for (std::uint32_t engine = 0; engine < kEngines; ++engine) {
      for (const Prompt& blocks : prompts) index.store(EngineId{engine}, Tier::Gpu, blocks);
    }
  }
};

const Filled& filled() {
  static const Filled instance;
  return instance;
}

void count_blocks(benchmark::State& state, std::size_t blocks) {
  state.counters["per_block"] = benchmark::Counter(
      static_cast<double>(blocks),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void match(benchmark::State& state) {
  const auto& [prompts, index] = filled();
  const auto blocks = static_cast<std::size_t>(state.range(0));
  std::size_t next = 0;
  for (auto unused : state) {
    const Prompt& asked = prompts[next++ % prompts.size()];
    benchmark::DoNotOptimize(index.match(std::span{asked}.first(blocks)));
  }
  count_blocks(state, blocks);
}

void match_nothing(benchmark::State& state) {
  const Prompt unknown(kBlocks, keys::BlockKey{1});
  for (auto unused : state) benchmark::DoNotOptimize(filled().index.match(unknown));
}

void store_and_remove(benchmark::State& state) {
  ExactIndex index;
  const Prompt blocks = prompt(0);
  for (auto unused : state) {
    index.store(EngineId{1}, Tier::Gpu, blocks);
    index.remove(EngineId{1}, Tier::Gpu, blocks);
  }
  count_blocks(state, 2 * blocks.size());
}

// "bytes_per_block": heap of an index of 200,000 blocks that so many engines hold, by block.
void memory(benchmark::State& state) {
  constexpr std::size_t kHeldBlocks = 200'000;
  Prompt blocks(kHeldBlocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = keys::BlockKey{(i + 1) * 0x9E37'79B9'7F4A'7C15U >> 3U};
  }
  const auto heap = [] {
    const auto used = mallinfo2();
    return used.uordblks + used.hblkhd;
  };
  for (auto unused : state) {
    const auto before = heap();
    ExactIndex index;
    for (std::uint32_t engine = 0; engine < state.range(0); ++engine) {
      index.store(EngineId{engine}, Tier::Gpu, blocks);
    }
    state.counters["bytes_per_block"] =
        static_cast<double>(heap() - before) / static_cast<double>(kHeldBlocks);
  }
}

BENCHMARK(match)->ArgName("blocks")->Arg(64)->Arg(512);
BENCHMARK(match_nothing);
BENCHMARK(store_and_remove);
BENCHMARK(memory)->ArgName("holders")->Arg(1)->Arg(4)->Arg(64)->Iterations(1);

}  // namespace
}  // namespace sightline::index
