// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/world.h"

#include <algorithm>

namespace sightline::judge {

const Pod* pod_named(const World& world, std::string_view name) {
  const auto found =
      std::lower_bound(world.pods.begin(), world.pods.end(), name,
                       [](const Pod& pod, std::string_view wanted) { return pod.name < wanted; });
  return found == world.pods.end() || found->name != name ? nullptr : &*found;
}

}  // namespace sightline::judge
