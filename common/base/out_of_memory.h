// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/error.h"

namespace sightline {

// The error of a request for which the system gave no memory (std::bad_alloc). Only this request
// fails. Counts the failure. Retryable.
Error out_of_memory();

// How often an allocation failed in this process, for a metric. Both from any thread.
std::uint64_t allocation_failures();
void count_allocation_failure();

}  // namespace sightline
