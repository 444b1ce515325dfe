// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/error.h"

namespace sightline {

// Of a request for which the system gave no memory (std::bad_alloc), which ends it and nothing
// else. Counts.
Error out_of_memory();

// How often that happened in this process. From any thread.
std::uint64_t allocation_failures();
void count_allocation_failure();

}  // namespace sightline
