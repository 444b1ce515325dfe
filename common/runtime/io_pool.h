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

// Of each kind.
inline constexpr std::size_t kIoPoolThreadsMax = 1024;

struct IoPoolOptions {
  std::size_t io_threads = 1;  // 1 to kIoPoolThreadsMax; each owns an io_context
  // 0 to kIoPoolThreadsMax; for work that would hold an I/O thread too long, of which there must be
  // none without such threads. One of several is kept for small steps (step_order.h).
  std::size_t compute_threads = 1;
  std::string name = "sl";  // of the threads: NAME-io-0, NAME-compute-0
};

// The threads of the data plane. What is created on an I/O thread stays on it: sockets, pools and
// coroutines need no locks. Threads start in the constructor.
// Declare the pool before the objects whose sockets live on it, and call stop() before these are
// destroyed.
class IoPool {
 public:
  explicit IoPool(const IoPoolOptions& options);
  // Stops, then destroys coroutines that were still suspended.
  ~IoPool();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] asio::io_context& context(std::size_t thread);
  // Of the given I/O thread; use it only there.
  [[nodiscard]] Deadlines& deadlines(std::size_t thread);
  // Number of the calling I/O thread, below size(). Calling it elsewhere is a bug.
  [[nodiscard]] std::size_t index_here() const;
  // Runs the step on a compute thread when its turn comes. From any thread. leave() may follow as
  // long as the step lives: nobody waits for its result any more.
  void compute(std::unique_ptr<Step> step);
  void leave(Step& step);
  // Bytes that wait to be freed by compute threads (freed_aside.h).
  [[nodiscard]] std::atomic<std::size_t>& freeing();

  // False once stop() was called.
  [[nodiscard]] bool running() const;

  // Ends and joins all threads; compute jobs that already run are waited for. Idempotent; from a
  // thread that is not of the pool.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How dear work is, and who waits for it.
struct Effort {
  std::size_t weight = 0;  // in units of 16 ns, at a guess
  std::stop_token left{};  // stopped when nobody waits for the result any more
};

// A step of a coroutine: calls and then resumes. One that is left runs at once.
template <class Call, class Resume>
class ResumingStep final : public Step {
 public:
  ResumingStep(IoPool& pool, const Effort& effort, Call& call, Resume resume)
      : Step(effort.weight, effort.left),
        call_(call),
        resume_(std::move(resume)),
        on_leave_(effort.left, Leave{pool, *this}) {}

  void run() override {
    call_();
    auto home = asio::get_associated_executor(resume_);
    asio::post(home, std::move(resume_));
  }

 private:
  struct Leave {
    IoPool& pool;
    Step& step;
    void operator()() const { pool.leave(step); }
  };

  Call& call_;
  Resume resume_;
  std::stop_callback<Leave> on_leave_;
};

// Runs work() on a compute thread and resumes the caller on its own I/O thread, with the exception
// that escaped the work, if one did. References that the work captures must outlive the co_await.
//   auto parse = [&body] { return parse_body(body); };
//   const auto parsed = co_await run_on_compute(pool, effort, std::move(parse));
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

// Steps of more than this weight, about a millisecond, run on the compute threads, so that one
// client's request does not hold up the streams that share its I/O thread. Others stay: the way to
// another thread and back costs about 10 µs, and there an image's bytes are not in the core's
// caches (923 KB: 6 to 18 % more CPU for the whole request).
inline constexpr std::size_t kInlineWeightMax = 64U << 10U;

// Runs work(), which gives a Result, on this thread if its weight is small, else on the compute
// pool. Work whose client has left before it began is not done: Cancelled.
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
