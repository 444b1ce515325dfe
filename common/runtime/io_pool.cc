// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/io_pool.h"

#include <atomic>
#include <string>
#include <vector>

#include <asio/executor_work_guard.hpp>

#include "common/base/check.h"
#include "common/runtime/worker_thread.h"

namespace sightline {
namespace {

constexpr std::size_t kThreadsMax = 256;

struct Here {
  const void* pool = nullptr;
  std::size_t index = 0;
};
thread_local Here here;

// Work guards keep run() from returning while nothing is pending.
using Guard = asio::executor_work_guard<Executor>;

struct IoThread {
  asio::io_context context{1};
  Guard guard{context.get_executor()};
};

// Until the context is stopped, which returns without an exception.
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

}  // namespace

struct IoPool::State {
  std::atomic<bool> running{true};
  // Declared first, destroyed last: suspended coroutines, which end with their context, may own
  // deadlines.
  std::vector<std::unique_ptr<Deadlines>> deadlines;
  std::vector<std::unique_ptr<IoThread>> io;
  // Destroyed before the I/O contexts, where callers of jobs that never ran are suspended.
  std::unique_ptr<asio::io_context> compute;
  std::optional<Guard> compute_guard;
  bool has_compute = false;
  std::vector<WorkerThread> io_threads;
  std::vector<WorkerThread> compute_threads;
};

IoPool::IoPool(const IoPoolOptions& options) : state_(std::make_unique<State>()) {
  SL_CHECK(options.io_threads >= 1 && options.io_threads <= kThreadsMax);
  SL_CHECK(options.compute_threads <= kThreadsMax);
  state_->compute = std::make_unique<asio::io_context>(static_cast<int>(options.compute_threads));
  state_->has_compute = options.compute_threads > 0;
  state_->compute_guard.emplace(state_->compute->get_executor());
  for (std::size_t i = 0; i < options.io_threads; ++i) {
    state_->io.push_back(std::make_unique<IoThread>());
    state_->deadlines.push_back(std::make_unique<Deadlines>(state_->io[i]->context));
  }
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
        [compute = state_->compute.get()](std::stop_token) { run_context(*compute); });
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

asio::io_context& IoPool::compute() {
  SL_CHECK(state_->has_compute);
  return *state_->compute;
}

bool IoPool::running() const { return state_->running; }

void IoPool::stop() {
  state_->running = false;
  state_->compute->stop();
  state_->compute_threads.clear();
  for (auto& io : state_->io) io->context.stop();
  state_->io_threads.clear();
  for (auto& deadlines : state_->deadlines) deadlines->stop();
}

}  // namespace sightline
