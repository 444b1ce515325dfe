// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/bench/replicas/engine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace sightline::quality {
namespace {

Duration seconds(double s) { return Duration(static_cast<Duration::rep>(s * 1e9)); }

std::size_t blocks_for(std::uint64_t tokens) {
  return (tokens + kTraceBlockTokens - 1) / kTraceBlockTokens;
}

}  // namespace

double EngineModel::prefill_capacity() const {
  const double step_s = std::chrono::duration<double>(step).count();
  return batch_tokens_max / (step_s + batch_tokens_max / prefill_tokens_per_s);
}

std::size_t BlockPool::leading(const std::vector<keys::BlockKey>& prompt) const {
  std::size_t count = 0;
  while (count < prompt.size() && named_.contains(prompt[count])) ++count;
  return count;
}

void BlockPool::use(keys::BlockKey key) {
  ListedBlock& block = named_.at(key);
  ++block.users;
  if (!block.idle) return;
  idle_.erase(*block.idle);
  block.idle.reset();
}

bool BlockPool::acquire(const std::vector<keys::BlockKey>& prompt, std::size_t total,
                        std::vector<keys::BlockKey>& removed) {
  const std::size_t hits = leading(prompt);
  std::size_t idle_hits = 0;
  for (std::size_t i = 0; i < hits; ++i) idle_hits += named_.at(prompt[i]).idle ? 1 : 0;
  const std::size_t fresh = total - hits;
  if (fresh > free_ + idle_.size() - idle_hits) return false;
  for (std::size_t i = 0; i < hits; ++i) use(prompt[i]);
  while (free_ < fresh) {
    removed.push_back(idle_.front());
    named_.erase(idle_.front());
    idle_.pop_front();
    ++free_;
  }
  free_ -= fresh;
  return true;
}

bool BlockPool::name(keys::BlockKey block) {
  const auto [entry, is_new] = named_.try_emplace(block);
  if (is_new) entry->second.users = 1;
  return is_new;
}

void BlockPool::release(const std::vector<keys::BlockKey>& named, std::size_t unnamed) {
  free_ += unnamed;
  for (auto key = named.rbegin(); key != named.rend(); ++key) {
    ListedBlock& block = named_.at(*key);
    SL_CHECK(block.users > 0);
    if (--block.users == 0) block.idle = idle_.insert(idle_.end(), *key);
  }
}

double BlockPool::usage() const {
  return 1.0 - static_cast<double>(free_ + idle_.size()) / static_cast<double>(blocks_);
}

std::vector<keys::BlockKey> BlockPool::held() const {
  std::vector<keys::BlockKey> all;
  all.reserve(named_.size());
  for (const auto& [key, block] : named_) all.push_back(key);
  std::sort(all.begin(), all.end());
  return all;
}

SimulatedEngine::SimulatedEngine(const EngineModel& model, Timeline& timeline, Told told)
    : model_(model), timeline_(timeline), told_(std::move(told)), pool_(model.blocks) {}

void SimulatedEngine::submit(std::uint64_t number, const TracedRequest& request) {
  SL_CHECK(blocks_for(request.prompt_tokens + std::uint64_t{request.output_tokens}) <=
           model_.blocks);
  backlog_tokens_ += request.prompt_tokens;
  Running running;
  running.number = number;
  running.request = &request;
  waiting_.push_back(std::move(running));
  if (!in_step_) begin_step();
}

// Running requests come first: tokens to decode, then prompts that are partly computed.
void SimulatedEngine::begin_step() {
  std::uint32_t budget = model_.batch_tokens_max;
  std::uint32_t decoded = 0;
  std::uint32_t prefilled = 0;
  for (const Running& running : running_) decoded += running.decodes() ? 1 : 0;
  budget -= std::min(budget, decoded);
  for (Running& running : running_) {
    running.chunk = std::min(budget, running.request->prompt_tokens - running.computed);
    budget -= running.chunk;
    prefilled += running.chunk;
  }
  const std::uint32_t left = budget;
  admit(budget);
  prefilled += left - budget;
  in_step_ = !running_.empty();
  if (!in_step_) return;
  timeline_.after(model_.step + seconds(prefilled / model_.prefill_tokens_per_s) +
                      model_.decode_token * decoded,
                  [this] { end_step(); });
}

void SimulatedEngine::admit(std::uint32_t& budget) {
  while (!waiting_.empty() && budget > 0 && running_.size() < model_.running_max) {
    Running& next = waiting_.front();
    const TracedRequest& request = *next.request;
    const auto& prompt = request.whole_blocks;
    const std::size_t hits = pool_.leading(prompt);
    const std::size_t total =
        blocks_for(request.prompt_tokens + std::uint64_t{request.output_tokens});
    if (!pool_.acquire(prompt, total, change_.removed)) return;
    // The engine always computes the last token, and with it its block of 16 tokens.
    const std::uint32_t reusable = (request.prompt_tokens - 1) / 16 * 16;
    next.hit_tokens = std::min(static_cast<std::uint32_t>(hits) * kTraceBlockTokens, reusable);
    next.computed = next.hit_tokens;
    next.named.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(hits));
    next.unnamed = total - hits;
    backlog_tokens_ -= next.hit_tokens;
    next.chunk = std::min(budget, request.prompt_tokens - next.computed);
    budget -= next.chunk;
    running_.push_back(std::move(next));
    waiting_.pop_front();
  }
}

void SimulatedEngine::name_computed(Running& running, std::uint32_t before) {
  const auto& prompt = running.request->whole_blocks;
  std::vector<keys::BlockKey> stored;
  const std::size_t end = running.computed / kTraceBlockTokens;
  for (std::size_t i = before / kTraceBlockTokens; i < end && i < prompt.size(); ++i) {
    if (i < running.named.size() || !pool_.name(prompt[i])) continue;
    running.named.push_back(prompt[i]);
    --running.unnamed;
    stored.push_back(prompt[i]);
  }
  if (!stored.empty()) change_.stored.push_back(std::move(stored));
}

bool SimulatedEngine::advance(Running& running) {
  const bool decoded = running.decodes();
  if (running.chunk > 0) {
    const std::uint32_t before = running.computed;
    running.computed += running.chunk;
    backlog_tokens_ -= running.chunk;
    computed_tokens_ += running.chunk;
    running.chunk = 0;
    name_computed(running, before);
    if (running.decodes()) told_.first_token(running.number, running.hit_tokens);
  }
  if (!running.decodes()) return false;
  ++running.decoded;
  if (decoded) ++decoded_tokens_;
  if (running.decoded < running.request->output_tokens) return false;
  pool_.release(running.named, running.unnamed);
  told_.end(running.number);
  return true;
}

void SimulatedEngine::end_step() {
  std::erase_if(running_, [this](Running& running) { return advance(running); });
  if (!change_.removed.empty() || !change_.stored.empty())
    told_.changed(std::exchange(change_, {}));
  begin_step();
}

}  // namespace sightline::quality
