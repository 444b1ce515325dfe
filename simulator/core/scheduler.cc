// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace sightline::core {

struct Scheduler::Request {
  Request(std::uint64_t request_id, RequestSpec spec)
      : id(request_id),
        prompt_tokens(spec.prompt.size()),
        output_tokens_max(spec.output_tokens_max),
        answer_seed(spec.answer_seed),
        report_reused(spec.report_reused),
        sequence(std::move(spec.prompt), std::move(spec.keys)) {}

  const std::uint64_t id;
  const std::size_t prompt_tokens;
  const std::size_t output_tokens_max;
  const std::uint64_t answer_seed;
  const bool report_reused;
  Sequence sequence;
  // Leading tokens whose blocks are filled.
  std::size_t computed = 0;
  // The tokens that the running step computes.
  std::size_t step_tokens = 0;
  // It was scheduled once, and perhaps preempted after that.
  bool started_before = false;
  std::size_t cached_tokens = 0;

  [[nodiscard]] std::size_t tokens() const { return sequence.tokens().size(); }
  [[nodiscard]] std::size_t outputs() const { return tokens() - prompt_tokens; }
  // Returns whether the computation of this number of tokens only adds a token to the answer.
  [[nodiscard]] bool decodes(std::size_t count) const { return count == 1 && outputs() > 0; }
};

Scheduler::Scheduler(const Options& options, Sampler sampler)
    : options_(options),
      sampler_(std::move(sampler)),
      cache_(options.cache),
      encoder_cache_(options.encoder_cache_tokens) {
  SL_CHECK(options.running_max > 0 && options.step_tokens_max > 0);
  SL_CHECK(options.step_prompt_tokens_max > 0);
}

Scheduler::~Scheduler() = default;

bool Scheduler::fits(const RequestSpec& spec) const {
  // The last output token is never computed, and so it needs no slot.
  const std::size_t tokens = spec.prompt.size() + spec.output_tokens_max - 1;
  return tokens <= cache_.blocks_usable() * options_.cache.block_size;
}

RequestId Scheduler::add(RequestSpec spec) {
  SL_CHECK(!spec.prompt.empty() && spec.output_tokens_max > 0 && fits(spec));
  const std::uint64_t id = ++last_id_;
  auto request = std::make_unique<Request>(id, std::move(spec));
  waiting_.push_back(request.get());
  requests_.emplace(id, std::move(request));
  return RequestId{id};
}

void Scheduler::abort(RequestId id) {
  const auto found = requests_.find(id.value);
  if (found == requests_.end()) return;
  // The running step has already reserved its work. complete() ends the request.
  if (found->second->step_tokens > 0) {
    aborted_.push_back(id.value);
    return;
  }
  ++counters_.aborted;
  forget(*found->second);
}

void Scheduler::forget(Request& request) {
  cache_.release(request.sequence);
  std::erase(running_, &request);
  std::erase(waiting_, &request);
  requests_.erase(request.id);
}

StepWork Scheduler::schedule() {
  SL_CHECK(!in_step_);
  StepWork work;
  step_tokens_ = 0;
  step_prompt_tokens_ = 0;
  const std::uint64_t preempted = counters_.preempted;
  schedule_running(work);
  // After a preemption no request joins, because blocks are short.
  if (counters_.preempted == preempted) schedule_waiting(work);
  in_step_ = !work.empty();
  return work;
}

std::size_t Scheduler::budget_for(const Request& request, std::size_t wanted) const {
  const std::size_t left = options_.step_tokens_max - step_tokens_;
  // Decoding needs no part of the prompt budget. A long prompt can therefore not stop the answers
  // of
  // other requests.
  if (request.decodes(wanted)) return std::min(wanted, left);
  return std::min({wanted, left, options_.step_prompt_tokens_max - step_prompt_tokens_});
}

void Scheduler::schedule_running(StepWork& work) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Request& request = *running_[i];
    const std::size_t tokens = budget_for(request, request.tokens() - request.computed);
    if (tokens == 0) continue;
    bool room = cache_.grow(request.sequence, request.computed + tokens);
    // The request that started last gives way first. That may be this request itself.
    while (!room && running_.size() > i) {
      preempt_last();
      room = running_.size() > i && cache_.grow(request.sequence, request.computed + tokens);
    }
    if (room) book(work, request, tokens);
  }
}

void Scheduler::preempt_last() {
  Request& request = *running_.back();
  running_.pop_back();
  cache_.release(request.sequence);
  // The request keeps the tokens of its answer, so it produces no token twice. It computes the
  // tokens without cached blocks again.
  request.computed = 0;
  // It goes to the front, because it arrived before all requests that have not started.
  waiting_.push_front(&request);
  ++counters_.preempted;
}

void Scheduler::schedule_waiting(StepWork& work) {
  while (!waiting_.empty() && running_.size() < options_.running_max) {
    Request& request = *waiting_.front();
    const std::size_t cached = cache_.match(request.sequence);
    const std::size_t tokens = budget_for(request, request.tokens() - cached);
    // No later request may overtake the first one, even if it would fit.
    if (tokens == 0) return;
    if (!cache_.grow(request.sequence, cached + tokens, request.report_reused)) return;
    waiting_.pop_front();
    running_.push_back(&request);
    start(request, cached);
    book(work, request, tokens);
  }
}

void Scheduler::start(Request& request, std::size_t cached_tokens) {
  request.computed = cached_tokens;
  // A preempted request starts again. Its prompt counts only once.
  if (std::exchange(request.started_before, true)) return;
  request.cached_tokens = cached_tokens;
  counters_.prompt_tokens += request.prompt_tokens;
  counters_.cached_tokens += cached_tokens;
}

void Scheduler::book(StepWork& work, Request& request, std::size_t tokens) {
  if (request.decodes(tokens)) {
    work.decode_tokens += tokens;
  } else {
    work.prefill_tokens += tokens;
    work.encoder_tokens += encode_media(request, tokens);
    step_prompt_tokens_ += tokens;
  }
  request.step_tokens = tokens;
  step_tokens_ += tokens;
}

std::size_t Scheduler::encode_media(const Request& request, std::size_t tokens) {
  // An item is encoded whole in the first step that touches it.
  std::size_t encoded = 0;
  const std::size_t first = request.computed;
  const std::size_t last = first + tokens;
  for (const MediaRange& media : request.sequence.keys().media) {
    if (media.offset >= last || media.offset + media.length <= first) continue;
    if (encoder_cache_.find(media.identifier)) continue;
    encoded += media.length;
    counters_.encoder_tokens += media.length;
    encoder_cache_.add({media.identifier, static_cast<std::uint32_t>(media.length), media.length});
  }
  return encoded;
}

std::vector<StepOutput> Scheduler::complete() {
  SL_CHECK(std::exchange(in_step_, false));
  std::vector<StepOutput> outputs;
  std::vector<Request*> finished;
  for (Request* request : running_) {
    const std::size_t tokens = std::exchange(request->step_tokens, 0);
    if (tokens == 0) continue;
    if (!request->decodes(tokens)) counters_.prefill_tokens += tokens;
    request->computed += tokens;
    // The step computed only a chunk of the tokens. There is no output before the last chunk.
    if (request->computed < request->tokens()) continue;
    if (std::find(aborted_.begin(), aborted_.end(), request->id) != aborted_.end()) continue;
    const TokenId token = sampler_(request->answer_seed, request->outputs());
    request->sequence.append(token);
    ++counters_.generated_tokens;
    const bool last = request->outputs() >= request->output_tokens_max;
    const std::size_t block = options_.cache.block_size;
    const std::size_t whole = request->prompt_tokens / block * block;
    outputs.push_back({.request = RequestId{request->id},
                       .token = token,
                       .finished = last,
                       .cached_tokens = request->cached_tokens,
                       .created_tokens = whole - request->cached_tokens});
    if (last) finished.push_back(request);
  }
  counters_.finished += finished.size();
  for (Request* request : finished) forget(*request);
  // The step is over, so abort() can end these requests.
  for (const std::uint64_t id : std::exchange(aborted_, {})) abort(RequestId{id});
  return outputs;
}

}  // namespace sightline::core
