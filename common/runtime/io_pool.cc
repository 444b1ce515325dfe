// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/io_pool.h"

#include <atomic>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

namespace sightline {
namespace {

struct Here {
  const void* pool = nullptr;
  std::size_t index = 0;
};
// Which thread of which pool this is. A process may have several pools.
thread_local Here here;

// Work guards keep run() from returning while nothing is pending.
using Guard = asio::executor_work_guard<Executor>;

struct IoThread {
  asio::io_context context{1};
  Guard guard{context.get_executor()};
};

// Runs until the context is stopped, which returns without an exception. After an exception that
// end_escaped() survives, the thread must go on.
void run_context(asio::io_context& context) {
  for (bool is_over = false; !is_over;) {
    try {
      context.run();
      is_over = true;
    } catch (...) {
      end_escaped(std::current_exception());
    }
  }
}

// The steps that wait for compute threads, and the loop of these threads.
class ComputeQueue {
 public:
  explicit ComputeQueue(std::size_t threads) : has_threads_(threads > 0), order_(threads) {}

  void add(std::unique_ptr<Step> step) {
    SL_CHECK(has_threads_);
    {
      const MutexLock lock(mutex_);
      order_.add(std::move(step));
    }
    // Outside of the lock, or the thread would wake only to wait for the lock.
    changed_.notify_one();
  }

  void leave(Step& step) {
    {
      const MutexLock lock(mutex_);
      order_.leave(step);
    }
    // A step that may not run beside the running ones may run when its client has left.
    changed_.notify_one();
  }

  // Runs steps until stop().
  void run() {
    while (auto step = next()) {
      const Instant began = system_clock().now();
      // An exception ends the step, not its thread.
      try {
        step->run();
      } catch (...) {
        end_escaped(std::current_exception());
      }
      if (ended(*step, system_clock().now() - began)) changed_.notify_one();
    }
  }

  void stop() {
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::unique_ptr<Step> next() {
    std::unique_ptr<Step> step;
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() SL_REQUIRES(mutex_) {
      return is_stopped_ || (step = order_.next()) != nullptr;
    });
    return step;
  }

  // Returns true if waiting steps may have become allowed to run.
  bool ended(const Step& step, Duration used) {
    const MutexLock lock(mutex_);
    order_.ended(step, used);
    return order_.waiting() > 0;
  }

  const bool has_threads_;
  Mutex mutex_;
  CondVar changed_;
  StepOrder order_ SL_GUARDED_BY(mutex_);
  bool is_stopped_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace

struct IoPool::State {
  std::atomic<std::size_t> freeing{0};  // steps use it, so it must outlive them
  std::atomic<bool> running{true};
  // Declared first and destroyed last. Suspended coroutines end with their context and may own
  // deadlines.
  std::vector<std::unique_ptr<Deadlines>> deadlines;
  std::vector<std::unique_ptr<IoThread>> io;
  // Destroyed before the I/O contexts: the steps that never ran belong to coroutines suspended
  // there.
  std::unique_ptr<ComputeQueue> compute;
  std::vector<WorkerThread> io_threads;
  std::vector<WorkerThread> compute_threads;
};

IoPool::IoPool(const IoPoolOptions& options) : state_(std::make_unique<State>()) {
  SL_CHECK(options.io_threads >= 1 && options.io_threads <= kIoPoolThreadsMax);
  SL_CHECK(options.compute_threads <= kIoPoolThreadsMax);
  state_->compute = std::make_unique<ComputeQueue>(options.compute_threads);
  for (std::size_t i = 0; i < options.io_threads; ++i) {
    state_->io.push_back(std::make_unique<IoThread>());
    state_->deadlines.push_back(std::make_unique<Deadlines>(state_->io[i]->context));
  }
  // All contexts exist before a thread starts, because threads may use each other's.
  for (std::size_t i = 0; i < options.io_threads; ++i) {
    state_->io_threads.emplace_back(options.name + "-io-" + std::to_string(i),
                                    [state = state_.get(), i](std::stop_token) {
                                      here = {state, i};
                                      run_context(state->io[i]->context);
                                    });
  }
  for (std::size_t i = 0; i < options.compute_threads; ++i) {
    state_->compute_threads.emplace_back(
        options.name + "-compute-" + std::to_string(i),
        [compute = state_->compute.get()](std::stop_token) { compute->run(); });
  }
}

IoPool::~IoPool() { stop(); }

std::size_t IoPool::size() const { return state_->io.size(); }

asio::io_context& IoPool::context(std::size_t thread) { return state_->io.at(thread)->context; }

Deadlines& IoPool::deadlines(std::size_t thread) { return *state_->deadlines.at(thread); }

std::size_t IoPool::index_here() const {
  SL_CHECK(here.pool == state_.get());
  return here.index;
}

void IoPool::compute(std::unique_ptr<Step> step) { state_->compute->add(std::move(step)); }

void IoPool::leave(Step& step) { state_->compute->leave(step); }

std::atomic<std::size_t>& IoPool::freeing() { return state_->freeing; }

bool IoPool::running() const { return state_->running; }

void IoPool::stop() {
  state_->running = false;
  state_->compute->stop();
  state_->compute_threads.clear();
  for (auto& io : state_->io) io->context.stop();
  state_->io_threads.clear();
  // After the join, because timers belong to the I/O threads.
  for (auto& deadlines : state_->deadlines) deadlines->stop();
}

}  // namespace sightline
