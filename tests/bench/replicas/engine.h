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

// A model of an engine with continuous batching and chunked prefill. A step takes step + prefill
// tokens / prefill_tokens_per_s + decoded tokens * decode_token. The defaults resemble a 70B model
// on four GPUs with a cache of 1,048,576 tokens.
struct EngineModel {
  Duration step = std::chrono::milliseconds(10);
  double prefill_tokens_per_s = 5'000;
  Duration decode_token = std::chrono::microseconds(100);
  std::uint32_t batch_tokens_max = 2'048;  // of one step.
  std::uint32_t running_max = 256;         // requests.
  std::uint32_t blocks = 2'048;            // of kTraceBlockTokens tokens.

  // Returns the prefill tokens per second of full steps without decode.
  [[nodiscard]] double prefill_capacity() const;
};

// What one step of an engine changed in its cache. The removals come before the stores.
struct CacheChange {
  std::vector<keys::BlockKey> removed;
  std::vector<std::vector<keys::BlockKey>> stored;  // each list is a chain in one prompt
};

// A block pool. Whole prompt blocks stay after their request until their room is needed. The least
// recently used block is evicted first, and the blocks of one request from the tail on.
class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks) : free_(blocks), blocks_(blocks) {}

  // Returns how many leading blocks the pool holds.
  [[nodiscard]] std::size_t leading(const std::vector<keys::BlockKey>& prompt) const;
  // Puts the prompt's leading blocks into use, and as many fresh ones as `total` needs. Returns
  // false if there is no room. Adds the evicted blocks to `removed`.
  bool acquire(const std::vector<keys::BlockKey>& prompt, std::size_t total,
               std::vector<keys::BlockKey>& removed);
  // Gives a fresh block of a request its content. Returns false if another copy has that content.
  // This one then stays without a name.
  bool name(keys::BlockKey block);
  // Ends a request. `named` are its named blocks in the prompt's order, `unnamed` the number of the
  // others.
  void release(const std::vector<keys::BlockKey>& named, std::size_t unnamed);

  [[nodiscard]] double usage() const;  // share used by requests, 0 to 1
  [[nodiscard]] std::vector<keys::BlockKey> held() const;

 private:
  struct ListedBlock {
    std::uint32_t users = 0;
    std::optional<std::list<keys::BlockKey>::iterator> idle = {};
  };
  void use(keys::BlockKey block);

  std::size_t free_;  // blocks without content
  const std::size_t blocks_;
  std::unordered_map<keys::BlockKey, ListedBlock> named_;
  std::list<keys::BlockKey> idle_;  // blocks without a request, least recently used first
};

// One engine. It computes steps on the timeline as long as it has requests.
class SimulatedEngine {
 public:
  // Calls at the end of a step.
  struct Told {
    std::function<void(std::uint64_t request, std::uint32_t hit_tokens)> first_token;
    std::function<void(std::uint64_t request)> end;
    std::function<void(CacheChange)> changed;
  };
  // The timeline outlives the engine.
  SimulatedEngine(const EngineModel& model, Timeline& timeline, Told told);

  // Adds a request. It must live until the engine has answered it.
  void submit(std::uint64_t number, const TracedRequest& request);

  [[nodiscard]] double kv_usage() const { return pool_.usage(); }
  // Returns the prompt tokens that are not computed yet.
  [[nodiscard]] std::uint64_t backlog_tokens() const { return backlog_tokens_; }
  [[nodiscard]] std::uint64_t computed_tokens() const { return computed_tokens_; }
  [[nodiscard]] std::uint64_t decoded_tokens() const { return decoded_tokens_; }
  [[nodiscard]] std::vector<keys::BlockKey> held() const { return pool_.held(); }

 private:
  struct Running {
    std::uint64_t number = 0;
    const TracedRequest* request = nullptr;
    std::uint32_t hit_tokens = 0;
    std::uint32_t computed = 0;  // prompt tokens, with the reused ones.
    std::uint32_t chunk = 0;     // of them, in this step.
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
