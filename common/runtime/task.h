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

// The executor of an I/O thread. A concrete type, because type erasure would cost each operation.
using Executor = asio::io_context::executor_type;

// A coroutine on an I/O thread. Inside a co_await expression, give names to values built from
// braces, to lambdas with captures and to awaited results: g++ 12 destroys these temporaries twice
// (GCC bug 99576).
template <class T>
using Task = asio::awaitable<T, Executor>;

// The completion token to await Asio operations inside a Task.
inline constexpr asio::use_awaitable_t<Executor> use_task{};

// Ends an exception that escaped a coroutine or a callback of an I/O thread. If the system had no
// memory (std::bad_alloc), counts it and returns. Any other exception ends the process.
void end_escaped(const std::exception_ptr& escaped) noexcept;

// Starts a coroutine without waiting for it. An exception that escapes it goes to end_escaped().
// Thread safety: from any thread. The coroutine runs on the executor's thread.
inline void spawn(const Executor& executor, Task<void> task) {
  asio::co_spawn(executor, std::move(task), [](const std::exception_ptr& escaped) noexcept {
    if (escaped) end_escaped(escaped);
  });
}

// A condition that one coroutine waits for, and that code of the same thread fulfils. If the gate
// is destroyed while a coroutine waits, the coroutine is dropped with it.
// Thread safety: all calls on one I/O thread.
class Gate {
 public:
  // Returns when the gate is open, immediately if it is open already. At most one coroutine waits
  // at a time.
  Task<void> wait();
  // Opens the gate. Resumes the waiter before it returns, so the waiter may have destroyed the
  // owner of this gate by then.
  void open();
  // Later calls of wait() wait again.
  void close() { open_ = false; }
  [[nodiscard]] bool is_open() const { return open_; }

 private:
  // The suspended coroutine, with the type of its continuation erased.
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
  // Sets both members before it resumes the waiter, which may destroy this gate.
  open_ = true;
  const auto waiter = std::exchange(waiter_, nullptr);
  if (waiter) waiter->resume();
}

}  // namespace sightline
