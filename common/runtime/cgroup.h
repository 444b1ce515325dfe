// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sightline::runtime {

// A control file of a cgroup, by its names in both versions of the interface (cgroups(7)).
struct CgroupFile {
  std::string_view v1_controller;  // "memory"
  std::string_view v1_file;        // "memory.limit_in_bytes"
  std::string_view v2_file;        // "memory.max"
};

// What the file holds for the cgroup of this process and for each of its parents, as far as they
// are mounted here: every level limits. Without white space at the end; empty where there is no
// such file. `root`: in front of /proc and /sys, for tests.
std::vector<std::string> cgroup_levels(const CgroupFile& file, const std::string& root = {});

}  // namespace sightline::runtime
