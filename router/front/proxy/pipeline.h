// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/task.h"

#include "router/front/proxy/services.h"
#include "router/openai/request.h"
#include "router/prompt/prepare/prepare.h"
#include "router/workers/routing/select.h"

namespace sightline::proxy {

// A prompt's blocks and what they ask of an engine.
struct Keyed {
  keys::BlockSequence blocks;  // of the known tokens
  // A batch is the work of all its prompts, of which only the first is tokenized: the others'
  // tokens are estimated from their bytes. Several samples of a prompt count once: they share its
  // blocks.
  routing::Job job;
  std::uint64_t first_prompt_tokens = 0;  // of the prompt that the blocks are those of
  // By engine family: the blocks do not tell what its engines reuse for this request.
  std::array<bool, contract::kEngineFamilies.size()> unpredictable{};
  // The blocks and the job are all that the engine will report on: its counts must equal ours.
  bool exact = false;
  bool prompt_estimated = false;  // job.prompt_tokens is a guess, wholly or in part
};

// What a request is sent to: a data-parallel rank of a worker, which for most is the only one.
struct Target {
  std::shared_ptr<const fleet::Worker> worker;
  std::size_t place = 0;  // in worker->ranks

  [[nodiscard]] const fleet::Rank& rank() const { return worker->ranks[place]; }
  // The rank's number where the engine has to be told; nothing where it has only one.
  [[nodiscard]] std::optional<std::uint32_t> rank_number() const;
};

// Whom a request was sent to already.
struct Tried {
  std::vector<std::string> failed;  // workers not to be asked again
  std::string again;                // the worker to be asked again, as long as it is there
};

// All targets of the workers that may take a request, in the order of the fleet; a worker that
// failed it is left out with all its ranks: they share its server. Where there is none, those of
// suspect workers: one that failed others a moment ago is a better chance than none. A request for
// an adapter is for those that have loaded it. Of a worker to be asked again, its targets alone.
std::vector<Target> targets_for(const fleet::FleetSnapshot& fleet, const Tried& tried,
                                const std::optional<std::string>& adapter);

// What a request gets for which there is no target: Unavailable, to be tried again.
Error no_worker();

// The targets that may serve a request, with what each would save. Parallel vectors.
struct Shortlist {
  std::vector<Target> targets;
  std::vector<routing::Candidate> candidates;
  std::uint64_t removals = 0;          // position of the removal journal before the index was asked
  Instant asked{};                     // when the index was asked
  std::optional<std::string> adapter;  // that the request names
};

// The first five steps of a request's life: parse, prepare, key, match, select. They change
// nothing outside the request, so explaining a request and serving it run the same code.
// Thread safety: all methods from any I/O thread of the pool.
class Pipeline {
 public:
  explicit Pipeline(const Services& services);

  // 1: the body as values; the model must be served. `left`, here and in 2: stopped when nobody
  // waits for the result any more; what has not begun then is not done: Cancelled.
  Task<Result<openai::Request>> parse(openai::Endpoint endpoint, std::string body,
                                      std::stop_token left) const;

  // 2: media resolved, template rendered, text tokenized, placeholders expanded.
  Task<Result<prepare::Prepared>> prepare(const openai::Request& request,
                                          std::stop_token left) const;

  // 3: block keys.
  [[nodiscard]] Keyed key(const openai::Request& request, const prepare::Prepared& prepared) const;

  // 4: who may serve, and how many leading blocks each holds. Error: Unavailable if none may.
  [[nodiscard]] Result<Shortlist> match(const openai::Request& request, const Keyed& keyed,
                                        const Tried& tried) const;

  // 5: the choice, with its terms. Every decision that is carried out takes a turn; an explained
  // one looks at the turn that would be next.
  [[nodiscard]] routing::Decision select(const Keyed& keyed, const Shortlist& shortlist,
                                         std::uint64_t turn) const;
  std::uint64_t take_turn() { return turn_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t next_turn() const { return turn_.load(std::memory_order_relaxed); }

  // Tokens per block of the workers with precise events; nothing if there is none.
  [[nodiscard]] std::optional<std::uint32_t> block_size() const;

 private:
  [[nodiscard]] Result<Done> check_model(const openai::Request& request) const;
  [[nodiscard]] std::size_t prompt_tokens_max() const;
  [[nodiscard]] routing::Candidate candidate_of(const Target& target, const Keyed& keyed,
                                                const index::Overlaps& overlaps) const;

  const Services& services_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> turn_{0};
};

// The adapter that a request's model name stands for, if it is one.
std::optional<std::string> lora_of(const fleet::FleetSnapshot& fleet,
                                   const std::optional<std::string>& model);

// The model's part of a block key's scope: the same for requests and for the engines' events.
std::string scope_model(const contract::ServeSettings& settings);

// The target's cache, if the blocks it announced may be compared with keys of this block size.
std::optional<CacheId> precise_cache(const Target& target, std::uint32_t block_size);

}  // namespace sightline::proxy
