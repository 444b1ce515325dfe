// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <cstdint>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/contract/identity_key.h"

#include "router/cache/keys/block_key.h"

// Method: one iteration computes the block keys of one whole prompt. Its tokens are in the CPU
// cache. One thread. "per_block" is the time of one block.
namespace sightline::keys {
namespace {

void run(benchmark::State& state, const std::vector<MediaSpan>& media) {
  const auto tokens_count = static_cast<std::size_t>(state.range(0));
  const auto block_size = static_cast<std::uint32_t>(state.range(1));
  std::vector<TokenId> tokens(tokens_count);
  for (std::size_t i = 0; i < tokens_count; ++i) {
    tokens[i] = static_cast<TokenId>(i * 2'654'435'761U % 151'936);
  }
  const Scheme scheme{contract::development_identity_key()};
  const BlockKey root = scheme.root({.model = "model"});
  for (auto unused : state) {
    benchmark::DoNotOptimize(
        block_keys(scheme, root, {.tokens = tokens, .media = media, .block_size = block_size}));
  }
  const auto blocks = static_cast<double>(tokens_count / block_size);
  state.counters["per_block"] = benchmark::Counter(
      blocks, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void text(benchmark::State& state) { run(state, {}); }

// The prompt has an image of 256 tokens at the start of every 1,024.
void images(benchmark::State& state) {
  std::vector<MediaSpan> media;
  for (std::int64_t start = 0; start + 256 <= state.range(0); start += 1024) {
    media.push_back({.id = identifier_hash("image"), .start = start, .length = 256});
  }
  run(state, media);
}

BENCHMARK(text)->ArgNames({"tokens", "block"})->Args({2'048, 16})->Args({32'768, 16});
BENCHMARK(text)->ArgNames({"tokens", "block"})->Args({131'072, 16})->Args({32'768, 64});
BENCHMARK(images)->ArgNames({"tokens", "block"})->Args({32'768, 16});

}  // namespace
}  // namespace sightline::keys
