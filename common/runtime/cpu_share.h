// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace sightline::runtime {

// Processors that the smallest quota of this process's cgroup and of those around it lets run at
// the same time, rounded up: cpu.max (version 2), cpu.cfs_quota_us and cpu.cfs_period_us (version
// 1). Nothing where no level has one. `root`: in front of /proc and /sys, for tests.
std::optional<std::size_t> cpu_quota(const std::string& root = {});

// How many threads of this process can run at the same time: the processors of its affinity mask,
// and no more than the quota. At least 1. What changes later is not seen.
std::size_t usable_cores();

}  // namespace sightline::runtime
