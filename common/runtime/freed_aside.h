// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <stop_token>
#include <utility>

#include "common/runtime/io_pool.h"
#include "common/runtime/step_order.h"

namespace sightline {

// Below this size a value is freed at once.
inline constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;
// Of values that wait to be freed. The ledger no longer counts them.
inline constexpr std::size_t kFreedAsideBytesMax = std::size_t{64} << 20U;

// Destroys its value when it runs. Nobody waits for it, so it runs before other steps.
template <class Value>
class FreeingStep final : public Step {
 public:
  // waiting: the bytes that wait to be freed, these among them.
  FreeingStep(Value&& value, std::size_t bytes, std::atomic<std::size_t>& waiting)
      : Step(0, ended_token()), value_(std::move(value)), bytes_(bytes), waiting_(waiting) {}
  ~FreeingStep() override { waiting_ -= bytes_; }
  FreeingStep(const FreeingStep&) = delete;
  FreeingStep& operator=(const FreeingStep&) = delete;

  // The thread destroys the step after it.
  void run() override {}

 private:
  static std::stop_token ended_token() {
    static const std::stop_token ended = [] {
      std::stop_source source;
      source.request_stop();
      return source.get_token();
    }();
    return ended;
  }

  Value value_;
  const std::size_t bytes_;
  std::atomic<std::size_t>& waiting_;
};

// Frees a large value of an I/O thread on a compute thread of its pool when the scope ends: it
// takes milliseconds to give megabytes back to the system. Declare it next to the value and before
// what refers to the value. The value is freed in place if it is small, if kFreedAsideBytesMax wait
// already, if the pool stops, or if there is no memory for a step.
// Thread safety: none; belongs to one I/O thread.
template <class Value>
class FreedAside {
 public:
  // bytes: what the value takes, about. Both references outlive it.
  FreedAside(IoPool& pool, Value& value, std::size_t bytes)
      : pool_(pool), value_(value), bytes_(bytes) {}
  FreedAside(const FreedAside&) = delete;
  FreedAside& operator=(const FreedAside&) = delete;

  ~FreedAside() {
    if (bytes_ < kLargeBytes || !pool_.running()) return;
    std::atomic<std::size_t>& waiting = pool_.freeing();
    const std::size_t before = waiting.fetch_add(bytes_);
    // One value may be larger than all that may wait.
    if (before > 0 && before + bytes_ > kFreedAsideBytesMax) {
      waiting -= bytes_;
      return;
    }
    std::unique_ptr<Step> step = step_for(waiting);
    if (step == nullptr) return;
    try {
      pool_.compute(std::move(step));
    } catch (const std::bad_alloc&) {
      // The step is destroyed, and its value with it.
    }
  }

 private:
  // Null, and the value is left alone: there is no memory.
  std::unique_ptr<Step> step_for(std::atomic<std::size_t>& waiting) {
    try {
      return std::make_unique<FreeingStep<Value>>(std::move(value_), bytes_, waiting);
    } catch (const std::bad_alloc&) {
      waiting -= bytes_;
      return nullptr;
    }
  }

  IoPool& pool_;
  Value& value_;
  const std::size_t bytes_;
};

}  // namespace sightline
