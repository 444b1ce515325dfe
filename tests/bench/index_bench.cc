// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "common/base/clock.h"

#include "router/cache/index/exact_index.h"

// Method: the index has 8 engines, each with 1,000 prompts of 512 blocks. The first 64 blocks are
// common to all prompts. Look-ups take the prompts in turn. One thread, and no writer at the same
// time. "per_block" is the time of one block of the prompt.
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
      for (const Prompt& blocks : prompts) index.store(CacheId{engine}, Tier::Gpu, blocks);
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
    index.store(CacheId{1}, Tier::Gpu, blocks);
    index.remove(CacheId{1}, Tier::Gpu, blocks);
  }
  count_blocks(state, 2 * blocks.size());
}

// "bytes_per_block": heap bytes per block of an index with 200,000 blocks, each held by so many
// engines.
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
      index.store(CacheId{engine}, Tier::Gpu, blocks);
    }
    state.counters["bytes_per_block"] =
        static_cast<double>(heap() - before) / static_cast<double>(kHeldBlocks);
  }
}

double milliseconds_since(Instant begin) {
  return std::chrono::duration<double, std::milli>(system_clock().now() - begin).count();
}

keys::BlockKey block_at(std::size_t i) {
  return keys::BlockKey{(i + 1) * 0x9E37'79B9'7F4A'7C15U >> 3U};
}

// Stores one block at a time, up to so many blocks. "longest_ms" is the longest of these stores.
// All look-ups would wait for it.
void growth(benchmark::State& state) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  for (auto unused : state) {
    ExactIndex index;
    double longest = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      const keys::BlockKey block = block_at(i);
      const Instant begin = system_clock().now();
      index.store(CacheId{1}, Tier::Gpu, {&block, 1});
      longest = std::max(longest, milliseconds_since(begin));
    }
    state.counters["longest_ms"] = longest;
  }
}

// So many threads look up a prompt without pause, while one thread stores and removes another
// prompt. "longest_ms" is the longest of these stores. "lookups" is the number per second of all
// threads together.
void writer_beside_readers(benchmark::State& state) {
  const auto readers = static_cast<std::size_t>(state.range(0));
  ExactIndex index;
  const Prompt read = prompt(0);
  const Prompt written = prompt(1);
  index.store(CacheId{0}, Tier::Gpu, read);
  std::atomic<std::uint64_t> lookups = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < readers; ++i) {
    threads.emplace_back([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); ++lookups) benchmark::DoNotOptimize(index.match(read));
    });
  }
  double longest = 0;
  for (auto unused : state) {
    const Instant begin = system_clock().now();
    index.store(CacheId{1}, Tier::Gpu, written);
    longest = std::max(longest, milliseconds_since(begin));
    index.remove(CacheId{1}, Tier::Gpu, written);
  }
  state.counters["longest_ms"] = longest;
  state.counters["lookups"] =
      benchmark::Counter(static_cast<double>(lookups), benchmark::Counter::kIsRate);
}

BENCHMARK(match)->ArgName("blocks")->Arg(64)->Arg(512);
BENCHMARK(match_nothing);
BENCHMARK(store_and_remove);
BENCHMARK(growth)->ArgName("blocks")->Arg(1'500'000)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(writer_beside_readers)->ArgName("readers")->Arg(4)->Iterations(200)->UseRealTime();
BENCHMARK(memory)->ArgName("holders")->Arg(1)->Arg(4)->Arg(64)->Iterations(1);

}  // namespace
}  // namespace sightline::index
