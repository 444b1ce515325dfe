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

// A smaller value is freed in place.
inline constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;
// The most bytes that wait to be freed. The memory ledger does not count them.
inline constexpr std::size_t kFreedAsideBytesMax = std::size_t{64} << 20U;

// A step that only destroys its value. Its stop token has stopped, so it runs before other steps,
// as a step does whose client has left.
template <class Value>
class FreeingStep final : public Step {
 public:
  // `bytes` of `waiting`, the bytes that wait to be freed, belong to this value.
  FreeingStep(Value&& value, std::size_t bytes, std::atomic<std::size_t>& waiting)
      : Step(0, ended_token()), value_(std::move(value)), bytes_(bytes), waiting_(waiting) {}
  ~FreeingStep() override { waiting_ -= bytes_; }
  FreeingStep(const FreeingStep&) = delete;
  FreeingStep& operator=(const FreeingStep&) = delete;

  // The compute thread destroys the step after run(), and the value with it.
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

// When the scope ends, frees a large value of an I/O thread on a compute thread. To return
// megabytes to the system takes milliseconds, which would delay all streams of the I/O thread.
// Declare it next to the value and before objects that refer to the value. It frees the value in
// place if:
// - the value is small
// - kFreedAsideBytesMax wait already
// - the pool stops
// - there is no memory for a step
//
// Thread safety: one I/O thread, which owns it.
template <class Value>
class FreedAside {
 public:
  // bytes: the approximate size of the value in memory. Pool and value outlive it.
  FreedAside(IoPool& pool, Value& value, std::size_t bytes)
      : pool_(pool), value_(value), bytes_(bytes) {}
  FreedAside(const FreedAside&) = delete;
  FreedAside& operator=(const FreedAside&) = delete;

  ~FreedAside() {
    if (bytes_ < kLargeBytes || !pool_.running()) return;
    std::atomic<std::size_t>& waiting = pool_.freeing();
    const std::size_t before = waiting.fetch_add(bytes_);
    // One value may be larger than the limit of bytes that wait, so the first is always accepted.
    if (before > 0 && before + bytes_ > kFreedAsideBytesMax) {
      waiting -= bytes_;
      return;
    }
    std::unique_ptr<Step> step = step_for(waiting);
    if (step == nullptr) return;
    try {
      pool_.compute(std::move(step));
    } catch (const std::bad_alloc&) {
      // The step is destroyed, and the value with it, on this thread.
    }
  }

 private:
  // Returns null, and does not touch the value, if there is no memory.
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
