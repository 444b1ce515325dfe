// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sightline::runtime {

// A control file of a cgroup, by its names in both versions of the interface (cgroups(7)).
struct CgroupFile {
  // For example "memory".
  std::string_view v1_controller;
  // For example "memory.limit_in_bytes".
  std::string_view v1_file;
  // For example "memory.max".
  std::string_view v2_file;
};

// The contents of the file for the cgroup of this process and for each parent mounted here.
// Callers need all of them, because every level limits. White space at the end is cut. Empty if
// there is no file of this name. `root` is put in front of /proc and /sys, for tests.
std::vector<std::string> cgroup_levels(const CgroupFile& file, const std::string& root = {});

}  // namespace sightline::runtime
