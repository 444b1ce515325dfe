// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/memory_ledger.h"
#include "common/contract/serve_settings.h"

namespace sightline::process {

// Memory that this process may have, as the machine says, in bytes.
struct MachineMemory {
  std::optional<std::size_t>
      limit;                  // the least of its cgroup's levels and of ulimit -v; none: none
  std::size_t available = 0;  // MemAvailable of /proc/meminfo; 0: unknown
};

// Reads it. `root`: in front of /proc and /sys, for tests.
MachineMemory machine_memory(const std::string& root = {});

// What the ledger of a router is made of.
struct MemoryPlan {
  std::size_t whole = 0;
  std::string_view source;  // of `whole`, for the log
  MemoryBounds bounds{};
};

// Pure: server.memory_bytes_max, or three quarters of what the machine gives; settings that bound
// shares are cut to what fits.
MemoryPlan plan_memory(const contract::ServeSettings& settings, const MachineMemory& machine);

// Says in the log how much it is, and which settings were cut.
void tell_memory(const MemoryPlan& plan, const contract::ServeSettings& settings);

}  // namespace sightline::process
