// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace sightline::runtime {

// The number of processors, rounded up, that the smallest CPU quota allows. It compares the cgroup
// of this process and its parents: cpu.max (version 2), cpu.cfs_quota_us and cpu.cfs_period_us
// (version 1). Nothing if no level has a quota. `root` is put in front of /proc and /sys, for
// tests.
std::optional<std::size_t> cpu_quota(const std::string& root = {});

// How many threads of this process can run at the same time: the processors of its affinity mask,
// at most the quota. At least 1. Call it at start: it does not notice later changes.
std::size_t usable_cores();

}  // namespace sightline::runtime
