// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/task.h"

#include <new>

#include "common/base/out_of_memory.h"

namespace sightline {

void end_escaped(const std::exception_ptr& escaped) noexcept {
  try {
    std::rethrow_exception(escaped);
  } catch (const std::bad_alloc&) {
    // Only the coroutine ends. The function is noexcept, so any other exception ends the process.
    count_allocation_failure();
  }
}

}  // namespace sightline
