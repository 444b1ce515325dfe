// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/cgroup.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "common/runtime/small_file.h"

namespace sightline::runtime {
namespace {

constexpr std::size_t kListBytesMax = std::size_t{4} << 20U;  // the mounts of a node with many pods
constexpr std::size_t kValueBytesMax = 4096;                  // control files hold one line
constexpr std::size_t kLevelsMax = 64;  // a bound on what /proc makes this loop do

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(std::move(part));
  return parts;
}

bool names(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The path of the cgroup in a hierarchy, from /proc/self/cgroup. An empty controller means version
// 2, whose line has an empty list of controllers.
std::optional<std::string> group_of(const std::string& list, std::string_view controller) {
  for (const std::string& line : split(list, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view hierarchy = std::string_view(line).substr(first + 1, second - first - 1);
    const bool is_it = controller.empty() ? hierarchy.empty() : names(hierarchy, controller);
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   // the mounted cgroup
  std::string point;  // the directory of the mount
};

// Reads /proc/self/mountinfo (proc(5)): "36 35 98:0 /ROOT /POINT rw,noatime master:1 - TYPE SOURCE
// OPTIONS".
std::optional<Mount> mount_of(const std::string& list, std::string_view controller) {
  for (const std::string& line : split(list, '\n')) {
    // The number of optional fields before the dash varies, so the line is split there first.
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool is_it = controller.empty() ? after[0] == "cgroup2"
                                          : after[0] == "cgroup" && names(after[2], controller);
    if (is_it) return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

// The path of the group below the mount. A group outside of the mounted tree maps to the mount
// itself, which is how a container sees its own cgroup.
std::string below(const Mount& mount, const std::string& group) {
  if (mount.root == "/") return group == "/" ? std::string() : group;
  if (group == mount.root || !group.starts_with(mount.root + "/")) return {};
  return group.substr(mount.root.size());
}

// Reads the file in the group at `path` and in each parent up to the mount. A level may lack the
// file: the root of a hierarchy has no limits.
void add_levels(std::vector<std::string>& values, const std::string& top, std::string path,
                std::string_view file) {
  for (std::size_t level = 0; level < kLevelsMax; ++level) {
    auto value = read_small_file(top + path + "/" + std::string(file), kValueBytesMax);
    if (value.ok()) {
      while (!value->empty() && static_cast<unsigned char>(value->back()) <= ' ') value->pop_back();
      values.push_back(std::move(*value));
    }
    if (path.empty()) return;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

std::vector<std::string> cgroup_levels(const CgroupFile& file, const std::string& root) {
  std::vector<std::string> values;
  const auto groups = read_small_file(root + "/proc/self/cgroup", kListBytesMax);
  const auto mounts = read_small_file(root + "/proc/self/mountinfo", kListBytesMax);
  if (!groups.ok() || !mounts.ok()) return values;
  // On a node with both versions, a controller belongs to one of them. The other lacks the file.
  for (const std::string_view controller : {std::string_view(), file.v1_controller}) {
    const auto group = group_of(*groups, controller);
    const auto mount = mount_of(*mounts, controller);
    if (!group || !mount || !group->starts_with('/')) continue;
    add_levels(values, root + mount->point, below(*mount, *group),
               controller.empty() ? file.v2_file : file.v1_file);
  }
  return values;
}

}  // namespace sightline::runtime
