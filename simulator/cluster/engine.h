// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "common/base/clock.h"
#include "common/runtime/task.h"

#include "simulator/cluster/event_publisher.h"
#include "simulator/core/scheduler.h"

namespace sightline::cluster {

// Tokens per second. 0 means instantly.
struct EngineRates {
  // Shared by all requests.
  double prefill = 0;
  // Shared by all requests, in addition to prefill.
  double encoder = 0;
  // For each request.
  double decode = 0;
};

// The settings of one engine core.
struct EngineOptions {
  core::Scheduler::Options scheduler;
  EngineRates rates;
  core::Sampler sampler;
};

// A histogram in seconds, with Prometheus' cumulative buckets.
struct LatencyHistogram {
  // The bounds of vLLM's histograms of the time to the first token.
  static constexpr std::array kBounds{0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                      0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                      20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
  // The number of values up to each bound.
  std::array<std::uint64_t, kBounds.size()> at_most{};
  std::uint64_t count = 0;
  double sum_s = 0;
  // Counts a value in every bucket that it fits into.
  void add(Duration value);
};

// The samples of one HTTP request. Only for the engine's thread.
class Job {
 public:
  // One token of a sample.
  struct Output {
    // Index in the submitted specs.
    std::size_t sample = 0;
    TokenId token = 0;
    bool last = false;
    std::size_t cached_tokens = 0;
    std::size_t created_tokens = 0;
  };

  // Waits until there are outputs, or until no more will come.
  Task<void> wait();
  // Returns the outputs after the last call.
  std::vector<Output> take() { return std::exchange(outputs_, {}); }
  [[nodiscard]] std::size_t samples() const { return requests_.size(); }
  // No more outputs will come after the ones taken.
  [[nodiscard]] bool ended() const { return open_samples_ == 0 && outputs_.empty(); }
  [[nodiscard]] bool cancelled() const { return cancelled_; }

 private:
  friend class Engine;
  std::vector<Output> outputs_;
  std::vector<core::RequestId> requests_;
  std::size_t open_samples_ = 0;
  bool cancelled_ = false;
  // The first token was delivered.
  bool started_ = false;
  Instant submitted_{};
  Gate gate_;
};

// Runs one engine core in time. Each step takes as long as its tokens need at the given rates.
// After the step its events are published and its tokens are delivered. If all rates are 0, no
// timer is used.
//
// Not thread-safe: everything runs on the thread of its io_context. This thread must have ended
// before the engine is destroyed.
class Engine {
 public:
  // The context, the publisher and the clock must live longer.
  Engine(asio::io_context& context, const EngineOptions& options, EventPublisher& publisher,
         const Clock& clock);

  // Returns whether each of the requests can ever run.
  [[nodiscard]] bool fits(const std::vector<core::RequestSpec>& specs) const;
  // Starts requests. Each of them must fit.
  std::shared_ptr<Job> submit(std::vector<core::RequestSpec> specs);
  // Stops the requests of a job that have not ended. Wakes its waiter soon after the return.
  void cancel(const std::shared_ptr<Job>& job);
  // Stops the requests of all jobs.
  void cancel_all();
  // Begins a new life: nothing is cached, counted or running. Jobs of the earlier life never wake.
  void restart();

  [[nodiscard]] core::Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] const core::Scheduler& scheduler() const { return *scheduler_; }
  // The number of restarts.
  [[nodiscard]] std::uint64_t life() const { return life_; }
  // The times from submit() to the first token, and to the end of all samples, since the restart.
  [[nodiscard]] const LatencyHistogram& first_token() const { return first_token_; }
  [[nodiscard]] const LatencyHistogram& whole_request() const { return whole_request_; }

 private:
  // The target of a running request's outputs.
  struct OutputTarget {
    std::shared_ptr<Job> job;
    std::size_t sample = 0;
  };

  // Starts a step soon, if no step runs. Requests that arrive before it share it.
  void pump_soon();
  void pump();
  // Publishes the events of the step, delivers its tokens and wakes their jobs.
  void end_step();
  void deliver(const core::StepOutput& output, std::vector<std::shared_ptr<Job>>& woken);
  // Returns the time of a step at the rates of the engine.
  [[nodiscard]] Duration duration_of(const core::StepWork& work) const;

  asio::io_context& context_;
  const EngineOptions options_;
  const EngineRates rates_;
  const bool instant_;
  EventPublisher& publisher_;
  const Clock& clock_;
  std::unique_ptr<core::Scheduler> scheduler_;
  std::uint64_t life_ = 0;
  asio::steady_timer timer_;
  Instant step_end_{};
  bool stepping_ = false;
  bool pump_posted_ = false;
  // By the number of the request.
  std::map<std::uint64_t, OutputTarget> places_;
  LatencyHistogram first_token_;
  LatencyHistogram whole_request_;
};

}  // namespace sightline::cluster
