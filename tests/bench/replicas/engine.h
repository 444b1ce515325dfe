// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"

#include "router/cache/keys/block_key.h"
#include "tests/bench/replicas/timeline.h"
#include "tests/bench/replicas/trace.h"

namespace sightline::quality {

// An engine with continuous batching and chunked prefill. A step takes
// step + prefill tokens / prefill_tokens_per_s + decoded tokens * decode_token.
// The defaults are of the order of a 70B model on four GPUs with a cache of 1,048,576 tokens.
struct EngineModel {
  Duration step = std::chrono::milliseconds(10);
  double prefill_tokens_per_s = 5'000;
  Duration decode_token = std::chrono::microseconds(100);
  std::uint32_t batch_tokens_max = 2'048;  // of one step
  std::uint32_t running_max = 256;         // requests
  std::uint32_t blocks = 2'048;            // of kTraceBlockTokens tokens

  // What full steps of prefill alone reach.
  [[nodiscard]] double prefill_capacity() const;
};

// What one step of an engine changed in its cache: first the removals, then the stores.
struct CacheChange {
  std::vector<keys::BlockKey> removed;
  std::vector<std::vector<keys::BlockKey>> stored;  // each follows in one prompt
};

// The block pool: whole prompt blocks stay after their request until the room is needed; the least
// recently used goes first, of one request the tail first.
class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks) : free_(blocks), blocks_(blocks) {}

  // Leading blocks that are held.
  [[nodiscard]] std::size_t leading(const std::vector<keys::BlockKey>& prompt) const;
  // Takes the prompt's leading blocks into use and as many fresh ones as `total` needs; nothing
  // where there is no room. What had to go stands in `removed`.
  bool acquire(const std::vector<keys::BlockKey>& prompt, std::size_t total,
               std::vector<keys::BlockKey>& removed);
  // A fresh block of the request has got content. False: another copy has it, this one stays
  // without a name.
  bool name(keys::BlockKey block);
  // Named blocks of the request, in the prompt's order, and how many it had without a name.
  void release(const std::vector<keys::BlockKey>& named, std::size_t unnamed);

  [[nodiscard]] double usage() const;  // in use by requests, 0 to 1
  [[nodiscard]] std::vector<keys::BlockKey> held() const;

 private:
  struct Block {
    std::uint32_t users = 0;
    std::optional<std::list<keys::BlockKey>::iterator> idle = {};
  };
  void use(keys::BlockKey block);

  std::size_t free_;  // without content
  const std::size_t blocks_;
  std::unordered_map<keys::BlockKey, Block> named_;
  std::list<keys::BlockKey> idle_;  // of no request, least recently used first
};

class SimulatedEngine {
 public:
  struct Told {
    std::function<void(std::uint64_t request, std::uint32_t hit_tokens)> first_token;
    std::function<void(std::uint64_t request)> end;
    std::function<void(CacheChange)> changed;
  };
  // The timeline outlives it.
  SimulatedEngine(const EngineModel& model, Timeline& timeline, Told told);

  // The traced request outlives its answer.
  void submit(std::uint64_t number, const TracedRequest& request);

  [[nodiscard]] double kv_usage() const { return pool_.usage(); }
  // Prompt tokens that are still to be computed.
  [[nodiscard]] std::uint64_t backlog_tokens() const { return backlog_tokens_; }
  [[nodiscard]] std::uint64_t computed_tokens() const { return computed_tokens_; }
  [[nodiscard]] std::uint64_t decoded_tokens() const { return decoded_tokens_; }
  [[nodiscard]] std::vector<keys::BlockKey> held() const { return pool_.held(); }

 private:
  struct Running {
    std::uint64_t number = 0;
    const TracedRequest* request = nullptr;
    std::uint32_t hit_tokens = 0;
    std::uint32_t computed = 0;  // prompt tokens, those hit included
    std::uint32_t chunk = 0;     // of them, in this step
    std::uint32_t decoded = 0;
    std::vector<keys::BlockKey> named;
    std::size_t unnamed = 0;  // blocks

    [[nodiscard]] bool decodes() const { return computed == request->prompt_tokens; }
  };

  void begin_step();
  void admit(std::uint32_t& budget);
  void end_step();
  void name_computed(Running& running, std::uint32_t before);
  bool advance(Running& running);  // true: it has ended

  const EngineModel model_;
  Timeline& timeline_;
  const Told told_;
  BlockPool pool_;
  std::deque<Running> waiting_;
  std::vector<Running> running_;
  CacheChange change_;
  bool in_step_ = false;
  std::uint64_t backlog_tokens_ = 0;
  std::uint64_t computed_tokens_ = 0;
  std::uint64_t decoded_tokens_ = 0;
};

}  // namespace sightline::quality
