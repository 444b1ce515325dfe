// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/cgroup.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace sightline::runtime {
namespace {

constexpr CgroupFile kMemoryMax{"memory", "memory.limit_in_bytes", "memory.max"};

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() {
    std::string name = ::testing::TempDir() + "cgroup-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(CgroupTest, EveryLevelOfVersionTwoCounts) {
  write("/proc/self/cgroup", "0::/kubepods/pod1/c1\n");
  write("/proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n");
  write("/sys/fs/cgroup/kubepods/pod1/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/kubepods/memory.max", "8589934592\n");
  EXPECT_EQ(cgroup_levels(kMemoryMax, root_),
            (std::vector<std::string>{"max", "1073741824", "8589934592"}));
}

TEST_F(CgroupTest, ContainerWithANamespaceSeesItsGroupAtTheTop) {
  write("/proc/self/cgroup", "0::/\n");
  write("/proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  write("/sys/fs/cgroup/memory.max", "500\n");
  EXPECT_EQ(cgroup_levels(kMemoryMax, root_), std::vector<std::string>{"500"});
}

TEST_F(CgroupTest, VersionOneIsReadBelowTheGroupThatIsMounted) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc/inner\n0::/\n");
  write("/proc/self/mountinfo",
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:9 - cgroup cgroup "
        "rw,memory\n");
  write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "300\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400\n");
  EXPECT_EQ(cgroup_levels(kMemoryMax, root_), (std::vector<std::string>{"300", "400"}));
}

TEST_F(CgroupTest, GroupOutsideOfTheMountMapsToTheMount) {
  write("/proc/self/cgroup", "4:memory:/elsewhere/abc\n");
  write("/proc/self/mountinfo",
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400\n");
  EXPECT_EQ(cgroup_levels(kMemoryMax, root_), std::vector<std::string>{"400"});
}

TEST_F(CgroupTest, WithoutCgroupsThereIsNothing) {
  EXPECT_TRUE(cgroup_levels(kMemoryMax, root_).empty());
  write("/proc/self/cgroup", "garbage\n::\n0::relative\n");
  write("/proc/self/mountinfo", "x - \n29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_TRUE(cgroup_levels(kMemoryMax, root_).empty());
}

}  // namespace
}  // namespace sightline::runtime
