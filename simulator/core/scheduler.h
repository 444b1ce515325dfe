// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "simulator/core/media_cache.h"
#include "simulator/core/prefix_cache.h"

namespace sightline::core {

using RequestId = StrongId<struct RequestIdTag, std::uint64_t>;

// One sample to generate.
struct RequestSpec {
  std::vector<TokenId> prompt;  // not empty
  SequenceKeys keys;
  std::uint32_t output_tokens_max = 16;  // at least 1
  std::uint64_t answer_seed = 0;         // what the sampler is given
  bool report_reused = false;            // see PrefixCache::grow
};

// What one step computes.
struct StepWork {
  std::size_t prefill_tokens = 0;
  std::size_t encoder_tokens = 0;  // of media items whose encoding is not remembered
  std::size_t decode_tokens = 0;   // requests that only add their next token
  [[nodiscard]] bool empty() const { return prefill_tokens + decode_tokens == 0; }
};

// A token that a step produced.
struct StepOutput {
  RequestId request;
  TokenId token = 0;
  bool finished = false;           // with finish_reason "length"
  std::size_t cached_tokens = 0;   // of the prompt, as found when the request was first scheduled
  std::size_t created_tokens = 0;  // in whole prompt blocks that were not found
};

// The token at a position of the answer that seed stands for.
using Sampler = std::function<TokenId(std::uint64_t seed, std::size_t position)>;

struct SchedulerCounters {
  std::uint64_t prompt_tokens = 0;   // of requests that were scheduled, once each
  std::uint64_t cached_tokens = 0;   // of those, found in the prefix cache
  std::uint64_t prefill_tokens = 0;  // computed, repeated work after preemption included
  std::uint64_t encoder_tokens = 0;  // computed
  std::uint64_t generated_tokens = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t preempted = 0;
};

// The step loop of a vLLM 0.32 engine core, first come first served: running requests go on,
// waiting ones join while there is room in the batch, prompts longer than the step's budget are
// computed in chunks, and when blocks run out the request that started last starts again later.
// schedule() and complete() alternate; in between the step "runs" for as long as the owner says.
// Deterministic. Thread safety: none; one owner.
class Scheduler {
 public:
  struct Options {
    PrefixCache::Options cache;
    std::uint32_t running_max = 256;              // requests in one step
    std::uint32_t step_tokens_max = 8192;         // prompt and output tokens in one step
    std::uint32_t step_prompt_tokens_max = 8192;  // of these, prompt tokens
    std::uint32_t encoder_cache_tokens = 8192;    // media embeddings remembered
  };

  Scheduler(const Options& options, Sampler sampler);
  ~Scheduler();

  // False if the prompt and its output can never fit the block pool.
  [[nodiscard]] bool fits(const RequestSpec& spec) const;
  // Queues a request that fits.
  RequestId add(RequestSpec spec);
  // Forgets a request: no more outputs, no more work. Unknown ids are ignored.
  void abort(RequestId request);

  // Chooses and books the next step's work; empty if there is none.
  StepWork schedule();
  // Ends the step: its outputs, in order of the running requests.
  std::vector<StepOutput> complete();

  // Prefix-cache events since the last call.
  std::vector<KvEvent> take_events() { return cache_.take_events(); }
  // See PrefixCache::reset.
  bool reset_prefix_cache() { return cache_.reset(); }
  bool forget_prefix_cache() { return cache_.forget(); }
  void reset_encoder_cache() { encoder_cache_.clear(); }

  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const SchedulerCounters& counters() const { return counters_; }
  [[nodiscard]] const PrefixCache& cache() const { return cache_; }

 private:
  struct Request;
  void schedule_running(StepWork& work);
  void schedule_waiting(StepWork& work);
  [[nodiscard]] std::size_t budget_for(const Request& request, std::size_t wanted) const;
  void start(Request& request, std::size_t cached_tokens);
  void book(StepWork& work, Request& request, std::size_t tokens);
  std::size_t encode_media(const Request& request, std::size_t tokens);
  void preempt_last();
  void forget(Request& request);

  const Options options_;
  const Sampler sampler_;
  PrefixCache cache_;
  MediaCache encoder_cache_;
  SchedulerCounters counters_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
  std::vector<Request*> running_;  // in order of start
  std::deque<Request*> waiting_;
  std::vector<std::uint64_t> aborted_;  // while their step runs
  std::size_t step_tokens_ = 0;         // booked for the step that runs
  std::size_t step_prompt_tokens_ = 0;  // of these, prompt tokens
  bool in_step_ = false;
};

}  // namespace sightline::core
