// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/memory_plan.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace sightline::process {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30U;

std::size_t bound(const MemoryPlan& plan, MemoryShare share) {
  return plan.bounds[static_cast<std::size_t>(share)];
}

TEST(MemoryPlan, TakesThreeQuartersOfTheLimitOrAvailableMemory) {
  const contract::ServeSettings settings;
  EXPECT_EQ(plan_memory(settings, {.limit = 2 * kGiB, .available = 64 * kGiB}).whole, kGiB / 2 * 3);
  EXPECT_EQ(plan_memory(settings, {.limit = {}, .available = 64 * kGiB}).whole, 48 * kGiB);
  EXPECT_GE(plan_memory(settings, {.limit = 0, .available = 0}).whole, contract::kMemoryBytesMin);
}

TEST(MemoryPlan, TheSettingWinsOverTheMachine) {
  contract::ServeSettings settings;
  settings.server.memory_bytes_max = kGiB;
  EXPECT_EQ(plan_memory(settings, {.limit = 2 * kGiB, .available = 64 * kGiB}).whole, kGiB);
}

TEST(MemoryPlan, SettingsOfSharesAreCutWhereTheyDoNotFit) {
  contract::ServeSettings settings;
  settings.server.memory_bytes_max = kGiB;
  settings.media.held_bytes_max = 1 << 20;
  const MemoryPlan plan = plan_memory(settings, {});
  EXPECT_LT(bound(plan, MemoryShare::Requests), kGiB);
  EXPECT_GE(bound(plan, MemoryShare::Requests), kGiB / 2);
  EXPECT_EQ(bound(plan, MemoryShare::Media), 1U << 20U);

  settings.server.memory_bytes_max = 64 * kGiB;
  const MemoryPlan ample = plan_memory(settings, {});
  EXPECT_EQ(bound(ample, MemoryShare::Requests), settings.server.total_body_bytes_max);
  EXPECT_EQ(bound(ample, MemoryShare::Events), settings.events.held_bytes_max);
  EXPECT_EQ(bound(ample, MemoryShare::TokenCache), settings.model.token_cache_bytes_max);
}

TEST(MemoryPlan, LimitIsTheLeastOfTheCgroupLevels) {
  std::string name = ::testing::TempDir() + "memory-XXXXXX";
  const std::filesystem::path root = ::mkdtemp(name.data());
  const auto write = [&root](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:    500 kB\n");
  EXPECT_EQ(machine_memory(root).limit, std::nullopt);
  EXPECT_EQ(machine_memory(root).available, 500U * 1024);
  write("proc/self/cgroup", "0::/a/b\n");
  write("proc/self/mountinfo", "29 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  write("cg/a/b/memory.max", "max\n");
  EXPECT_EQ(machine_memory(root).limit, std::nullopt) << "max is no limit";
  write("cg/a/memory.max", "700\n");
  EXPECT_EQ(machine_memory(root).limit, 700U);
  write("cg/a/b/memory.max", "900\n");
  EXPECT_EQ(machine_memory(root).limit, 700U);
  write("cg/a/memory.max", "9223372036854771712\n");
  EXPECT_EQ(machine_memory(root).limit, 900U);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace sightline::process
