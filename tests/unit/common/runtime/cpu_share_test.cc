// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/cpu_share.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace sightline::runtime {
namespace {

namespace fs = std::filesystem;

// A machine's files, below a directory of the test's own.
class CpuShare : public testing::Test {
 protected:
  ~CpuShare() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root_.string() + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void mount_v2() const {
    write("/proc/self/mountinfo", "30 25 0:26 / /v2 rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  }
  [[nodiscard]] std::optional<std::size_t> quota() const { return cpu_quota(root_.string()); }

 private:
  const fs::path root_ =
      fs::temp_directory_path() /
      ("cpu-share-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(CpuShare, SmallestQuotaOfAllLevelsCountsRoundedUp) {
  write("/proc/self/cgroup", "0::/kubepods/pod1/container\n");
  mount_v2();
  write("/v2/kubepods/cpu.max", "max 100000\n");
  write("/v2/kubepods/pod1/cpu.max", "150000 100000\n");
  write("/v2/kubepods/pod1/container/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 2U);
}

TEST_F(CpuShare, LessThanAProcessorIsOne) {
  write("/proc/self/cgroup", "0::/\n");
  mount_v2();
  write("/v2/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 1U);
}

TEST_F(CpuShare, ReadsThePeriodOfVersionOneFromItsFile) {
  write("/proc/self/cgroup", "5:memory:/docker/c\n4:cpu,cpuacct:/docker/c\n0::/docker/c\n");
  write("/proc/self/mountinfo",
        "31 25 0:27 /docker /v1/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("/v1/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/v1/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/v1/cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n");
  write("/v1/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3U);
}

TEST_F(CpuShare, WithoutAQuotaThereIsNone) {
  EXPECT_EQ(quota(), std::nullopt) << "no files at all";
  write("/proc/self/cgroup", "0::/a\n");
  mount_v2();
  EXPECT_EQ(quota(), std::nullopt) << "no controller";
  write("/v2/a/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuShare, GarbageIsNoQuota) {
  write("/proc/self/cgroup", "0::/\n");
  mount_v2();
  for (const char* text : {"", "\n", "100000 0", "0 100000", "-5 7", "a b", "1e9 2"}) {
    write("/v2/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
  write("/v2/cpu.max", "9223372036854775807 1");
  EXPECT_EQ(quota(), 9223372036854775807U);
}

TEST_F(CpuShare, ThisProcessMayUseAtLeastOneCore) { EXPECT_GE(usable_cores(), 1U); }

}  // namespace
}  // namespace sightline::runtime
