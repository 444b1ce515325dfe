// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/post.hpp>

namespace sightline::cluster {
namespace {

// The longest prefill of one step, if whole blocks allow it. It limits how late the engine notices
// that a request was cancelled. It also limits how long a prompt delays the tokens of running
// answers.
constexpr double kPrefillStepMax_s = 0.1;
// A step that begins this soon after the last one follows it without a pause.
constexpr std::chrono::milliseconds kTimerLatenessMax{5};

core::Scheduler::Options with_step_bound(const EngineOptions& options) {
  auto scheduler = options.scheduler;
  if (options.rates.prefill <= 0) return scheduler;
  const double tokens =
      std::max<double>(scheduler.cache.block_size, options.rates.prefill * kPrefillStepMax_s);
  scheduler.step_prompt_tokens_max =
      static_cast<std::uint32_t>(std::min<double>(tokens, scheduler.step_prompt_tokens_max));
  return scheduler;
}

}  // namespace

void LatencyHistogram::add(Duration value) {
  const double seconds = std::chrono::duration<double>(value).count();
  for (std::size_t i = 0; i < kBounds.size(); ++i) at_most[i] += seconds <= kBounds[i] ? 1 : 0;
  ++count;
  sum_s += seconds;
}

Task<void> Job::wait() {
  if (!outputs_.empty() || open_samples_ == 0) co_return;
  gate_.close();
  co_await gate_.wait();
}

Engine::Engine(asio::io_context& context, const EngineOptions& options, EventPublisher& publisher,
               const Clock& clock)
    : context_(context),
      options_(options),
      rates_(options.rates),
      instant_(options.rates.prefill <= 0 && options.rates.encoder <= 0 &&
               options.rates.decode <= 0),
      publisher_(publisher),
      clock_(clock),
      scheduler_(std::make_unique<core::Scheduler>(with_step_bound(options), options.sampler)),
      timer_(context) {}

bool Engine::fits(const std::vector<core::RequestSpec>& specs) const {
  return std::all_of(specs.begin(), specs.end(),
                     [this](const auto& spec) { return scheduler_->fits(spec); });
}

std::shared_ptr<Job> Engine::submit(std::vector<core::RequestSpec> specs) {
  auto job = std::make_shared<Job>();
  job->open_samples_ = specs.size();
  job->submitted_ = clock_.now();
  for (std::size_t sample = 0; sample < specs.size(); ++sample) {
    const auto id = scheduler_->add(std::move(specs[sample]));
    job->requests_.push_back(id);
    places_.emplace(id.value, OutputTarget{job, sample});
  }
  pump_soon();
  return job;
}

void Engine::cancel(const std::shared_ptr<Job>& job) {
  if (job->open_samples_ == 0) return;
  job->cancelled_ = true;
  job->open_samples_ = 0;
  for (const auto id : job->requests_) {
    scheduler_->abort(id);
    places_.erase(id.value);
  }
  // The gate is not opened here, because the caller may be a callback of the object that the waiter
  // will end.
  asio::post(context_, [job] { job->gate_.open(); });
  pump_soon();
}

void Engine::cancel_all() {
  // cancel() erases this entry, so it needs a pointer of its own to the job.
  while (!places_.empty()) cancel(std::shared_ptr<Job>(places_.begin()->second.job));
}

void Engine::restart() {
  ++life_;
  timer_.cancel();
  places_.clear();
  scheduler_ = std::make_unique<core::Scheduler>(with_step_bound(options_), options_.sampler);
  stepping_ = false;
  first_token_ = {};
  whole_request_ = {};
}

void Engine::pump_soon() {
  if (stepping_ || std::exchange(pump_posted_, true)) return;
  // Requests that arrive together share a step.
  asio::post(context_, [this] {
    pump_posted_ = false;
    pump();
  });
}

void Engine::pump() {
  if (stepping_) return;
  const core::StepWork work = scheduler_->schedule();
  if (work.empty()) return;
  stepping_ = true;
  if (instant_) {
    // A restart has replaced the step.
    asio::post(context_, [this, life = life_] {
      if (life == life_) end_step();
    });
    return;
  }
  // If steps follow one another, the lateness of the timer does not add up.
  const Instant now = clock_.now();
  const bool follows = now - step_end_ < kTimerLatenessMax;
  step_end_ = (follows ? step_end_ : now) + duration_of(work);
  timer_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(step_end_));
  timer_.async_wait([this, life = life_](const auto& failure) {
    if (!failure && life == life_) end_step();
  });
}

Duration Engine::duration_of(const core::StepWork& work) const {
  const auto seconds = [](std::size_t tokens, double rate) {
    return rate > 0 ? static_cast<double>(tokens) / rate : 0.0;
  };
  const double total = seconds(work.prefill_tokens, rates_.prefill) +
                       seconds(work.encoder_tokens, rates_.encoder) +
                       // All requests decode in parallel, so the step has the time of one token.
                       seconds(work.decode_tokens > 0 ? 1 : 0, rates_.decode);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(total));
}

void Engine::end_step() {
  std::vector<std::shared_ptr<Job>> woken;
  for (const auto& output : scheduler_->complete()) deliver(output, woken);
  publisher_.publish(scheduler_->take_events());
  stepping_ = false;
  pump_soon();
  // This is the last statement, because a waiter that resumes may submit and cancel.
  for (const auto& job : woken) job->gate_.open();
}

void Engine::deliver(const core::StepOutput& output, std::vector<std::shared_ptr<Job>>& woken) {
  const auto found = places_.find(output.request.value);
  // The request was cancelled while its step ran.
  if (found == places_.end()) return;
  const std::shared_ptr<Job> job = found->second.job;
  job->outputs_.push_back({.sample = found->second.sample,
                           .token = output.token,
                           .last = output.finished,
                           .cached_tokens = output.cached_tokens,
                           .created_tokens = output.created_tokens});
  if (!std::exchange(job->started_, true)) first_token_.add(clock_.now() - job->submitted_);
  if (output.finished) {
    places_.erase(found);
    if (--job->open_samples_ == 0) whole_request_.add(clock_.now() - job->submitted_);
  }
  if (std::find(woken.begin(), woken.end(), job) == woken.end()) woken.push_back(job);
}

}  // namespace sightline::cluster
