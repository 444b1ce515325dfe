// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/cluster_state.h"

#include <algorithm>

namespace sightline::judge {

const Pod* pod_named(const ClusterState& cluster, std::string_view name) {
  const auto found =
      std::lower_bound(cluster.pods.begin(), cluster.pods.end(), name,
                       [](const Pod& pod, std::string_view wanted) { return pod.name < wanted; });
  return found == cluster.pods.end() || found->name != name ? nullptr : &*found;
}

}  // namespace sightline::judge
