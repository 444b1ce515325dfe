// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/byte_budget.h"

namespace sightline::runtime {

// Configures the allocator for bodies of many megabytes that come and go. Blocks larger than
// kOwnMappingBytes return to the system when they are freed. Call it before threads start.
void tune_allocator();
// The block size, in bytes, above which the allocator gives a block a mapping of its own.
inline constexpr std::size_t kOwnMappingBytes = std::size_t{4} << 20U;

// Limits the difference between the memory that the process occupies and the memory that it needs.
// A thread checks once a second. If resident memory has grown above what `whole` holds, it returns
// memory that the allocator kept after frees to the system.
//
// It also reserves some address space and releases it when an allocation fails. Small allocations
// then still succeed, which the process needs to answer a request with an error.
// Thread safety: main creates and destroys it. A process has one.
class MemoryKeeper {
 public:
  // `whole` outlives it.
  explicit MemoryKeeper(const ByteBudget& whole);
  ~MemoryKeeper();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::runtime
