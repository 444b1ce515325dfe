// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/out_of_memory.h"

#include <atomic>

namespace sightline {
namespace {

std::atomic<std::uint64_t> failures = 0;

}  // namespace

// Retryable, because other requests end and give memory back.
Error out_of_memory() {
  count_allocation_failure();
  return overload_error("allocation", "the system has no memory for the request");
}

std::uint64_t allocation_failures() { return failures.load(std::memory_order_relaxed); }
void count_allocation_failure() { failures.fetch_add(1, std::memory_order_relaxed); }

}  // namespace sightline
