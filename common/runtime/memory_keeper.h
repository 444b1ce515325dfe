// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/byte_budget.h"

namespace sightline::runtime {

// Sets the allocator up for bodies of many megabytes that come and go: larger blocks than
// kOwnMappingBytes are given back to the system when they are freed. Before threads start.
void tune_allocator();
inline constexpr std::size_t kOwnMappingBytes = std::size_t{4} << 20U;

// Keeps the memory that the process takes near to what it needs. A thread of its own looks once a
// second: where resident memory has grown beyond what `whole` holds, what the allocator keeps of
// freed memory is given back to the system. Besides, some address space is held back for when an
// allocation fails: small ones then still succeed, which is what it takes to answer a request that
// is refused.
// Thread safety: made and destroyed by main; one in a process.
class MemoryKeeper {
 public:
  explicit MemoryKeeper(const ByteBudget& whole);  // outlives it
  ~MemoryKeeper();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::runtime
