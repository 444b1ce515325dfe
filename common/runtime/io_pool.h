// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <asio/associated_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include "common/base/error.h"
#include "common/runtime/deadlines.h"
#include "common/runtime/step_order.h"
#include "common/runtime/task.h"

namespace sightline {

// The most threads of each kind.
inline constexpr std::size_t kIoPoolThreadsMax = 1024;

struct IoPoolOptions {
  // 1 to kIoPoolThreadsMax. Each owns an io_context.
  std::size_t io_threads = 1;
  // 0 to kIoPoolThreadsMax. These threads run work that would block an I/O thread for too long.
  // Without them compute() ends the process. One of several only runs small steps (step_order.h).
  std::size_t compute_threads = 1;
  // A prefix of the threads' names: NAME-io-0, NAME-compute-0.
  std::string name = "sl";
};

// The threads of the data plane. An object that an I/O thread creates stays on this thread, so
// sockets, pools and coroutines need no locks. The constructor starts the threads. Declare the pool
// before the objects whose sockets it runs. Call stop() before these are destroyed.
// Thread safety: where a method does not say otherwise, from any thread.
class IoPool {
 public:
  // A count of threads outside its range ends the process (SL_CHECK).
  explicit IoPool(const IoPoolOptions& options);
  // Calls stop(), then destroys the coroutines that are still suspended.
  ~IoPool();

  // The number of I/O threads.
  [[nodiscard]] std::size_t size() const;
  // The io_context of I/O thread `thread`, from 0 to size() - 1.
  [[nodiscard]] asio::io_context& context(std::size_t thread);
  // The deadlines of this I/O thread. Use them only there.
  [[nodiscard]] Deadlines& deadlines(std::size_t thread);
  // The number of the calling I/O thread, from 0 to size() - 1. A call from another thread ends the
  // process (SL_CHECK).
  [[nodiscard]] std::size_t index_here() const;
  // Queues the step. A compute thread runs it when step_order.h says. After this call leave() may
  // follow while the step exists: it says that no caller waits for the result any more.
  void compute(std::unique_ptr<Step> step);
  void leave(Step& step);
  // The bytes that wait for compute threads to free them (freed_aside.h).
  [[nodiscard]] std::atomic<std::size_t>& freeing();

  // False after stop() was called.
  [[nodiscard]] bool running() const;

  // Ends and joins all threads. Compute steps that run are completed first. Further calls have no
  // effect. Call it from a thread that the pool does not own.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How much work costs, and who waits for it.
struct Effort {
  // An estimate, in units of 16 ns.
  std::size_t weight = 0;
  // Stops when no caller waits for the result any more.
  std::stop_token left{};
};

// A compute step of a coroutine. It runs `call` and then resumes the coroutine on its own executor.
// If its client leaves, it runs ahead of other steps, to free its memory soon.
template <class Call, class Resume>
class ResumingStep final : public Step {
 public:
  ResumingStep(IoPool& pool, const Effort& effort, Call& call, Resume resume)
      : Step(effort.weight, effort.left),
        call_(call),
        resume_(std::move(resume)),
        on_leave_(effort.left, Leave{pool, *this}) {}

  // Posts, because the coroutine must continue on its I/O thread.
  void run() override {
    call_();
    auto home = asio::get_associated_executor(resume_);
    asio::post(home, std::move(resume_));
  }

 private:
  // Runs when the stop token stops. It moves the step to the front.
  struct Leave {
    IoPool& pool;
    Step& step;
    void operator()() const { pool.leave(step); }
  };

  Call& call_;
  Resume resume_;
  std::stop_callback<Leave> on_leave_;
};

// Runs work() on a compute thread and resumes the caller on its own I/O thread. If an exception
// escapes the work, rethrows it there. References that the work captures must outlive the co_await.
//   `auto parse = [&body] { return parse_body(body); };`
//   `const auto parsed = co_await run_on_compute(pool, effort, std::move(parse));`
template <class Work>
Task<std::invoke_result_t<Work&>> run_on_compute(IoPool& pool, Effort effort, Work work) {
  using Value = std::invoke_result_t<Work&>;
  using Slot = std::conditional_t<std::is_void_v<Value>, std::monostate, std::optional<Value>>;
  Slot slot{};
  std::exception_ptr escaped;
  auto call = [&]() noexcept {
    try {
      if constexpr (std::is_void_v<Value>) {
        work();
      } else {
        slot.emplace(work());
      }
    } catch (...) {
      escaped = std::current_exception();
    }
  };
  auto start = [&pool, &effort, &call](auto resume) {
    using Resume = decltype(resume);
    pool.compute(std::make_unique<ResumingStep<decltype(call), Resume>>(pool, effort, call,
                                                                        std::move(resume)));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>&, void()>(start, use_task);
  if (escaped) std::rethrow_exception(escaped);
  if constexpr (!std::is_void_v<Value>) co_return std::move(*slot);
}

// Steps above this weight, about a millisecond, run on compute threads. Otherwise one client's
// request would delay the streams of its I/O thread. Lighter steps stay on the I/O thread. The way
// to another thread and back costs about 10 µs, and there an image's bytes are not in the core's
// caches (923 KB: 6 to 18 % more CPU for the whole request).
inline constexpr std::size_t kInlineWeightMax = 64U << 10U;

// Runs work(), which returns a Result: on this thread if its weight is small, else on a compute
// thread. If the client leaves before the work begins, the work is skipped. The result is the error
// Cancelled.
template <class Work>
Task<std::invoke_result_t<Work&>> offload(IoPool& pool, std::size_t weight, std::stop_token left,
                                          Work work) {
  if (weight <= kInlineWeightMax) co_return work();
  auto wanted = [&]() -> std::invoke_result_t<Work&> {
    if (left.stop_requested()) return client_error(ErrorCode::Cancelled, "the client left");
    return work();
  };
  Effort effort{.weight = weight, .left = left};
  auto result = co_await run_on_compute(pool, std::move(effort), std::move(wanted));
  co_return result;
}

}  // namespace sightline
