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

// Tokens per second; 0 = instant.
struct EngineRates {
  double prefill = 0;  // all requests together
  double encoder = 0;  // all requests together, on top of prefill
  double decode = 0;   // each request
};

struct EngineOptions {
  core::Scheduler::Options scheduler;
  EngineRates rates;
  core::Sampler sampler;
};

// Seconds, in Prometheus' cumulative buckets.
struct LatencyHistogram {
  static constexpr std::array kBounds{0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                      0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                      20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
  std::array<std::uint64_t, kBounds.size()> at_most{};
  std::uint64_t count = 0;
  double sum_s = 0;
  void add(Duration value);
};

// The samples of one HTTP request, on the engine's thread.
class Job {
 public:
  struct Output {
    std::size_t sample = 0;  // index in the specs submitted
    TokenId token = 0;
    bool last = false;
    std::size_t cached_tokens = 0;
    std::size_t created_tokens = 0;
  };

  // Returns when there are outputs, or when nothing more will come.
  Task<void> wait();
  // Outputs since the last call.
  std::vector<Output> take() { return std::exchange(outputs_, {}); }
  [[nodiscard]] std::size_t samples() const { return requests_.size(); }
  // No more outputs will come after those taken.
  [[nodiscard]] bool ended() const { return open_samples_ == 0 && outputs_.empty(); }
  [[nodiscard]] bool cancelled() const { return cancelled_; }

 private:
  friend class Engine;
  std::vector<Output> outputs_;
  std::vector<core::RequestId> requests_;
  std::size_t open_samples_ = 0;
  bool cancelled_ = false;
  bool started_ = false;  // the first token is out
  Instant submitted_{};
  Gate gate_;
};

// Runs one engine core in time: each step lasts as long as the rates say, then its events are
// published and its tokens handed out. With all rates 0 no timer is used.
// Thread safety: none; everything on the thread of its io_context, which must have ended before the
// engine is destroyed.
class Engine {
 public:
  // context, publisher and clock outlive the engine.
  Engine(asio::io_context& context, const EngineOptions& options, EventPublisher& publisher,
         const Clock& clock);

  // True if every one of the requests can ever run.
  [[nodiscard]] bool fits(const std::vector<core::RequestSpec>& specs) const;
  // Starts requests that fit.
  std::shared_ptr<Job> submit(std::vector<core::RequestSpec> specs);
  // Stops what has not ended and wakes its waiter, soon after the return.
  void cancel(const std::shared_ptr<Job>& job);
  void cancel_all();
  // Begins a new life: nothing cached, counted or running. Jobs of the former one never wake.
  void restart();

  [[nodiscard]] core::Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] const core::Scheduler& scheduler() const { return *scheduler_; }
  // Restarts so far.
  [[nodiscard]] std::uint64_t life() const { return life_; }
  [[nodiscard]] const LatencyHistogram& first_token() const { return first_token_; }
  [[nodiscard]] const LatencyHistogram& whole_request() const { return whole_request_; }

 private:
  struct Place {
    std::shared_ptr<Job> job;
    std::size_t sample = 0;
  };

  void pump_soon();
  void pump();
  void end_step();
  void deliver(const core::StepOutput& output, std::vector<std::shared_ptr<Job>>& woken);
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
  std::map<std::uint64_t, Place> places_;
  LatencyHistogram first_token_;
  LatencyHistogram whole_request_;
};

}  // namespace sightline::cluster
