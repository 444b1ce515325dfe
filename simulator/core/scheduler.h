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

// Identifies a request of one scheduler. The numbers start at 1.
using RequestId = StrongId<struct RequestIdTag, std::uint64_t>;

// One sample to generate.
struct RequestSpec {
  std::vector<TokenId> prompt;  // not empty
  SequenceKeys keys;
  std::uint32_t output_tokens_max = 16;  // at least 1
  std::uint64_t answer_seed = 0;         // for the sampler
  bool report_reused = false;            // see PrefixCache::grow
};

// The work of one step.
struct StepWork {
  std::size_t prefill_tokens = 0;
  // Of media items that the encoder cache lacks.
  std::size_t encoder_tokens = 0;
  // Requests that only add their next token.
  std::size_t decode_tokens = 0;
  [[nodiscard]] bool empty() const { return prefill_tokens + decode_tokens == 0; }
};

// A token from a step.
struct StepOutput {
  RequestId request;
  TokenId token = 0;
  // With finish_reason "length".
  bool finished = false;
  // Prompt tokens that were found when the request was first scheduled.
  std::size_t cached_tokens = 0;
  // Tokens in whole prompt blocks that were not found.
  std::size_t created_tokens = 0;
};

// Returns the token at a position of the answer that belongs to the seed.
using Sampler = std::function<TokenId(std::uint64_t seed, std::size_t position)>;

// The counters of a scheduler since its creation.
struct SchedulerCounters {
  // Of scheduled requests, each counted once.
  std::uint64_t prompt_tokens = 0;
  // The part of them that was found in the prefix cache.
  std::uint64_t cached_tokens = 0;
  // Computed, including repeated work after preemption.
  std::uint64_t prefill_tokens = 0;
  // Computed.
  std::uint64_t encoder_tokens = 0;
  std::uint64_t generated_tokens = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t preempted = 0;
};

// The step loop of a vLLM 0.32 engine core, in order of arrival:
// - Running requests continue. Waiting ones join while the batch has room.
// - A prompt above the step's budget is computed in chunks.
// - If blocks run out, the request that started last starts again later.
//
// schedule() and complete() alternate. Between them the step "runs" for as long as the owner
// decides. Deterministic. Thread safety: one owner.
class Scheduler {
 public:
  struct Options {
    PrefixCache::Options cache;
    std::uint32_t running_max = 256;              // requests in one step
    std::uint32_t step_tokens_max = 8192;         // prompt and output tokens in one step
    std::uint32_t step_prompt_tokens_max = 8192;  // the part of them that may be prompt tokens
    std::uint32_t encoder_cache_tokens = 8192;    // media embeddings that are remembered
  };

  // running_max, step_tokens_max and step_prompt_tokens_max must be above 0. complete() calls the
  // sampler once for each new token.
  Scheduler(const Options& options, Sampler sampler);
  ~Scheduler();

  // Returns false if the prompt and its output can never fit into the block pool.
  [[nodiscard]] bool fits(const RequestSpec& spec) const;
  // Queues a request. It must fit.
  RequestId add(RequestSpec spec);
  // Drops a request: it has no more outputs and no more work. Unknown ids are ignored.
  void abort(RequestId request);

  // Chooses and reserves the work of the next step. It may be empty.
  StepWork schedule();
  // Ends the step. Returns its outputs, in the order of the running requests.
  std::vector<StepOutput> complete();

  // Returns the prefix-cache events after the last call.
  std::vector<KvEvent> take_events() { return cache_.take_events(); }
  // See PrefixCache::reset.
  bool reset_prefix_cache() { return cache_.reset(); }
  bool forget_prefix_cache() { return cache_.forget(); }
  void reset_encoder_cache() { encoder_cache_.clear(); }

  // The requests that hold blocks, and the requests that wait for a place in the batch.
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const SchedulerCounters& counters() const { return counters_; }
  [[nodiscard]] const PrefixCache& cache() const { return cache_; }

 private:
  struct Request;
  void schedule_running(StepWork& work);
  void schedule_waiting(StepWork& work);
  // Returns how many of the wanted tokens the running step may still compute for the request.
  [[nodiscard]] std::size_t budget_for(const Request& request, std::size_t wanted) const;
  // Counts a request that joins the batch. Its first cached_tokens tokens need no work.
  void start(Request& request, std::size_t cached_tokens);
  // Adds tokens of a request to the step.
  void book(StepWork& work, Request& request, std::size_t tokens);
  std::size_t encode_media(const Request& request, std::size_t tokens);
  // Returns the last running request to the front of the queue, without blocks.
  void preempt_last();
  void forget(Request& request);

  const Options options_;
  const Sampler sampler_;
  PrefixCache cache_;
  MediaCache encoder_cache_;
  SchedulerCounters counters_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
  std::vector<Request*> running_;  // in the order of their starts
  std::deque<Request*> waiting_;
  // Aborted while their step runs.
  std::vector<std::uint64_t> aborted_;
  // Reserved for the running step.
  std::size_t step_tokens_ = 0;
  // Of these, prompt tokens.
  std::size_t step_prompt_tokens_ = 0;
  bool in_step_ = false;
};

}  // namespace sightline::core
