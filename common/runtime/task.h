// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

namespace sightline {

// An I/O thread's executor: concrete, so that no operation pays for type erasure.
using Executor = asio::io_context::executor_type;

// A coroutine on an I/O thread. Give values that are built from braces, lambdas that capture and
// awaited results a name of their own: inside a co_await expression g++ 12 destroys such
// temporaries twice (GCC bug 99576).
template <class T>
using Task = asio::awaitable<T, Executor>;

// Completion token for awaiting Asio operations inside a Task.
inline constexpr asio::use_awaitable_t<Executor> use_task{};

// An exception that escaped a coroutine, or a callback of an I/O thread: where the system had no
// memory only that ends, and is counted; anything else ends the process.
void end_escaped(const std::exception_ptr& escaped) noexcept;

// Starts a coroutine that nobody awaits; of an exception that escapes it: end_escaped().
// Thread safety: from any thread; the coroutine runs on the executor's thread.
inline void spawn(const Executor& executor, Task<void> task) {
  asio::co_spawn(executor, std::move(task), [](const std::exception_ptr& escaped) noexcept {
    if (escaped) end_escaped(escaped);
  });
}

// A condition that one coroutine waits for and code of the same thread fulfils.
// Thread safety: none; all calls on one I/O thread. Destroying the gate while somebody waits drops
// the waiting coroutine.
class Gate {
 public:
  // Returns once the gate is open, at once if it is already. At most one waiter at a time.
  Task<void> wait();
  // Opens the gate and resumes the waiter before returning: the caller must expect that the waiter
  // destroys what the gate belongs to.
  void open();
  void close() { open_ = false; }
  [[nodiscard]] bool is_open() const { return open_; }

 private:
  struct Waiter {
    virtual ~Waiter() = default;
    virtual void resume() = 0;
  };
  template <class Continuation>
  struct WaiterOf final : Waiter {
    explicit WaiterOf(Continuation c) : continuation(std::move(c)) {}
    void resume() override { std::move(continuation)(); }
    Continuation continuation;
  };

  std::unique_ptr<Waiter> waiter_;
  bool open_ = false;
};

inline Task<void> Gate::wait() {
  if (open_) co_return;
  auto store = [this](auto continuation) {
    waiter_ = std::make_unique<WaiterOf<decltype(continuation)>>(std::move(continuation));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>&, void()>(store, use_task);
}

inline void Gate::open() {
  open_ = true;
  const auto waiter = std::exchange(waiter_, nullptr);
  if (waiter) waiter->resume();
}

}  // namespace sightline
