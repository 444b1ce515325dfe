// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/memory_plan.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <sys/resource.h>

#include "common/base/log.h"
#include "common/runtime/cgroup.h"
#include "common/runtime/small_file.h"

namespace sightline::process {
namespace {

constexpr runtime::CgroupFile kMemoryMax{"memory", "memory.limit_in_bytes", "memory.max"};
constexpr std::size_t kListBytesMax = 65'536;  // of /proc/meminfo and similar files
// Without a limit, version 1 of cgroups writes a number of about 2^63, which is more than any
// memory.
constexpr std::size_t kNoLimitMin = std::size_t{1} << 60U;
constexpr std::size_t kKiB = 1024;
// The ledger gets this part of the memory. The rest is for the program itself, for memory that the
// allocator cannot return immediately, and for socket buffers and the like.
constexpr std::size_t kNumerator = 3;
constexpr std::size_t kDenominator = 4;
// If nothing is known.
constexpr std::size_t kFallbackBytes = std::size_t{2} << 30U;
// The least memory with which a router is of use. A machine with less meets its own limit.
constexpr std::size_t kWholeMin = contract::kMemoryBytesMin;

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads a line "NAME:    1234 kB" of a list like /proc/meminfo. Returns bytes.
std::optional<std::size_t> kib_line(const std::string& list, std::string_view name) {
  std::size_t at = list.find(std::string(name) + ":");
  if (at == std::string::npos) return std::nullopt;
  at = list.find_first_of("0123456789", at);
  if (at == std::string::npos) return std::nullopt;
  const auto kib = number_of(list.substr(at, list.find(' ', at) - at));
  if (!kib) return std::nullopt;
  return *kib * kKiB;
}

// ulimit -v limits addresses. Threads and libraries use many of them before the first request, so
// these are subtracted.
std::optional<std::size_t> address_limit(const std::string& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const auto status = runtime::read_small_file(root + "/proc/self/status", kListBytesMax);
  const std::size_t used = status.ok() ? kib_line(*status, "VmSize").value_or(0) : 0;
  return limit.rlim_cur - std::min<std::size_t>(limit.rlim_cur, used);
}

std::size_t part_of(std::size_t bytes) { return bytes / kDenominator * kNumerator; }

MemoryBounds wanted_bounds(const contract::ServeSettings& settings) {
  MemoryBounds wanted;
  // A share without a setting has no limit of its own, only that of the whole.
  wanted.fill(std::numeric_limits<std::size_t>::max());
  const auto set = [&wanted](MemoryShare share, std::uint64_t bytes) {
    wanted[static_cast<std::size_t>(share)] = bytes;
  };
  set(MemoryShare::Requests, settings.server.total_body_bytes_max);
  set(MemoryShare::Media, settings.media.held_bytes_max);
  set(MemoryShare::Events, settings.events.held_bytes_max);
  set(MemoryShare::TokenCache, settings.model.token_cache_bytes_max);
  return wanted;
}

void tell_cut(const MemoryPlan& plan, MemoryShare share, std::string_view setting,
              std::uint64_t wanted) {
  const std::size_t given = plan.bounds[static_cast<std::size_t>(share)];
  if (given >= wanted) return;
  log(LogLevel::Info, "reduced a memory limit: it does not fit into server.memory_bytes_max",
      {{"setting", setting}, {"bytes", given}, {"wanted", wanted}});
}

}  // namespace

MachineMemory machine_memory(const std::string& root) {
  MachineMemory machine;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  // Each level of the group limits the process, so the lowest limit counts.
  for (const std::string& level : runtime::cgroup_levels(kMemoryMax, root)) {
    least = std::min(least, number_of(level).value_or(least));
  }
  least = std::min(least, address_limit(root).value_or(least));
  if (least < kNoLimitMin) machine.limit = least;
  const auto list = runtime::read_small_file(root + "/proc/meminfo", kListBytesMax);
  if (list.ok()) machine.available = kib_line(*list, "MemAvailable").value_or(0);
  return machine;
}

MemoryPlan plan_memory(const contract::ServeSettings& settings, const MachineMemory& machine) {
  MemoryPlan plan{.whole = settings.server.memory_bytes_max, .source = "server.memory_bytes_max"};
  if (plan.whole == 0 && machine.limit) {
    plan.whole = part_of(*machine.limit);
    plan.source = "three quarters of the memory limit";
  } else if (plan.whole == 0) {
    plan.whole = part_of(machine.available > 0 ? machine.available : kFallbackBytes);
    plan.source = "three quarters of the available memory";
  }
  plan.whole = std::max(plan.whole, kWholeMin);
  plan.bounds = fitting_bounds(plan.whole, wanted_bounds(settings));
  return plan;
}

void tell_memory(const MemoryPlan& plan, const contract::ServeSettings& settings) {
  log(LogLevel::Info, "memory budget for data from clients, engines and peers",
      {{"memory_bytes_max", plan.whole}, {"source", plan.source}});
  tell_cut(plan, MemoryShare::Requests, "server.total_body_bytes_max",
           settings.server.total_body_bytes_max);
  tell_cut(plan, MemoryShare::Media, "media.held_bytes_max", settings.media.held_bytes_max);
  tell_cut(plan, MemoryShare::Events, "events.held_bytes_max", settings.events.held_bytes_max);
  tell_cut(plan, MemoryShare::TokenCache, "model.token_cache_bytes_max",
           settings.model.token_cache_bytes_max);
}

}  // namespace sightline::process
