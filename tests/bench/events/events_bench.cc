// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/base/check.h"
#include "common/contract/identity_key.h"

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/wire/batch_codec.h"
#include "tests/support/indexed.h"
#include "tests/support/pack.h"

// Method: messages as vLLM 0.32 sends them, each with one BlockStored of 64 new blocks of 16
// tokens. They are decoded, normalised and stored. One thread, and no reader. The engine clears its
// cache after 65,536 blocks, which is not timed. "per_block" is the time of one block.
namespace sightline::events {
namespace {

constexpr std::uint64_t kMessages = 1'024;
constexpr std::uint64_t kBlocks = 64;  // in one message
constexpr std::uint64_t kBlockTokens = 16;

// Encodes a token in the fewest bytes, as msgspec does.
pack::Value token(std::uint64_t id) {
  const int bytes = id < 0x80 ? 0 : id <= 0xffff ? 2 : 4;
  if (bytes == 0) return {static_cast<char>(id)};
  pack::Value out(1, bytes == 2 ? '\xcd' : '\xce');
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(id >> shift));
  }
  return out;
}

pack::Value stored(std::uint64_t message) {
  std::vector<std::uint64_t> hashes;
  std::vector<pack::Value> tokens;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    hashes.push_back((message * kBlocks + i + 1) * 0x9E37'79B9'7F4A'7C15U);
  }
  for (std::uint64_t i = 0; i < kBlocks * kBlockTokens; ++i) {
    tokens.push_back(token((message * 7'919 + i * 2'654'435'761U) % 151'936));
  }
  return pack::map({{"type", pack::text("BlockStored")},
                    {"block_hashes", pack::integers(hashes)},
                    {"parent_block_hash", pack::nil()},
                    {"token_ids", pack::array(tokens)},
                    {"block_size", pack::integer(kBlockTokens)},
                    {"lora_id", pack::nil()},
                    {"medium", pack::text("GPU")},
                    {"lora_name", pack::nil()}});
}

void ingest(benchmark::State& state) {
  std::vector<Bytes> messages;
  for (std::uint64_t i = 0; i < kMessages; ++i) messages.push_back(pack::batch({stored(i)}));
  const keys::Scheme scheme{contract::development_identity_key()};
  index::ExactIndex index;
  test::IndexedNormaliser engine({.id = CacheId{1}, .model = "model"}, scheme, index);
  for (auto unused : state) {
    for (const Bytes& message : messages) {
      const auto batch = wire::decode_batch(message);
      SL_CHECK(batch.ok());
      engine.apply(*batch);
    }
    state.PauseTiming();
    SL_CHECK(index.blocks(CacheId{1}) == kMessages * kBlocks);
    engine.reset();
    state.ResumeTiming();
  }
  state.counters["per_block"] = benchmark::Counter(
      static_cast<double>(kMessages * kBlocks),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void decode(benchmark::State& state) {
  const Bytes message = pack::batch({stored(0)});
  for (auto unused : state) benchmark::DoNotOptimize(wire::decode_batch(message));
  state.counters["per_block"] = benchmark::Counter(
      static_cast<double>(kBlocks),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(ingest);
BENCHMARK(decode);

}  // namespace
}  // namespace sightline::events
