// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/cpu_share.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include <sched.h>

#include "common/runtime/cgroup.h"

namespace sightline::runtime {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// quota / period, rounded up. "max" and -1 mean that there is no quota.
std::optional<std::size_t> processors(std::string_view quota_us, std::string_view period_us) {
  const auto quota = number(quota_us);
  const auto period = number(period_us);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  // Rounds up without overflow.
  return static_cast<std::size_t>((*quota - 1) / *period + 1);
}

std::size_t affine_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more than 1,024 processors, which do not fit into a cpu_set_t.
  const bool is_known = sched_getaffinity(0, sizeof(set), &set) == 0;
  return is_known ? static_cast<std::size_t>(CPU_COUNT(&set)) : std::thread::hardware_concurrency();
}

}  // namespace

std::optional<std::size_t> cpu_quota(const std::string& root) {
  // Version 2 has both numbers in one file, so this file is in both lists.
  const auto quotas = cgroup_levels({"cpu", "cpu.cfs_quota_us", "cpu.max"}, root);
  const auto periods = cgroup_levels({"cpu", "cpu.cfs_period_us", "cpu.max"}, root);
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < std::min(quotas.size(), periods.size()); ++i) {
    const std::string_view quota = quotas[i];
    const std::size_t blank = quota.find(' ');
    const auto here = blank == std::string_view::npos
                          ? processors(quota, periods[i])
                          : processors(quota.substr(0, blank), quota.substr(blank + 1));
    if (here) least = std::min(least.value_or(*here), *here);
  }
  return least;
}

std::size_t usable_cores() {
  // hardware_concurrency() may return 0.
  const std::size_t cores = std::max<std::size_t>(1, affine_cores());
  return std::min(cores, cpu_quota().value_or(cores));
}

}  // namespace sightline::runtime
