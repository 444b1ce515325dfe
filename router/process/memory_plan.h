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

// The memory that this process may use, in bytes, as the machine reports it.
struct MachineMemory {
  // The lowest limit among its cgroup's levels and ulimit -v. Absent: no limit.
  std::optional<std::size_t> limit;
  // MemAvailable of /proc/meminfo, 0: not known.
  std::size_t available = 0;
};

// Reads it. `root` is put before /proc and /sys, for tests.
MachineMemory machine_memory(const std::string& root = {});

// The sizes of a router's memory ledger.
struct MemoryPlan {
  // The bytes of all shares together.
  std::size_t whole = 0;
  // Where `whole` comes from, for the log.
  std::string_view source;
  // The bytes of each share.
  MemoryBounds bounds{};
};

// `whole` is `server.memory_bytes_max`, or three quarters of the machine's memory. Settings that
// limit shares are cut to what fits. Pure.
MemoryPlan plan_memory(const contract::ServeSettings& settings, const MachineMemory& machine);

// Logs the size of the ledger, and which settings were cut.
void tell_memory(const MemoryPlan& plan, const contract::ServeSettings& settings);

}  // namespace sightline::process
