// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/kinds.h"

#include <algorithm>
#include <array>

namespace sightline::owned {
namespace {

using object::Resource;

const std::array<Resource, 11>& rendered() {
  static const std::array<Resource, 11> resources = {{
      {"", "v1", "serviceaccounts", "ServiceAccount"},
      {"", "v1", "configmaps", "ConfigMap"},
      {"", "v1", "services", "Service"},
      {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"},
      {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"},
      {"apps", "v1", "statefulsets", "StatefulSet"},
      {"apps", "v1", "deployments", "Deployment"},
      {"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"},
      {"sightline.dev", "v1alpha1", "multimodalrouterpools", "MultimodalRouterPool"},
      {"monitoring.coreos.com", "v1", "podmonitors", "PodMonitor"},
      {"", "v1", "secrets", "Secret"},
  }};
  return resources;
}

const Resource& resource_of(std::string_view kind) {
  const auto found = std::find_if(rendered().begin(), rendered().end(),
                                  [&](const Resource& one) { return one.kind == kind; });
  return *found;
}

}  // namespace

const Resource& routers_resource() {
  static const Resource routers{"sightline.dev", "v1alpha1", "multimodalrouters",
                                "MultimodalRouter"};
  return routers;
}

const Resource& pods_resource() {
  static const Resource pods{"", "v1", "pods", "Pod"};
  return pods;
}

const Resource& replica_sets_resource() {
  static const Resource sets{"apps", "v1", "replicasets", "ReplicaSet"};
  return sets;
}

const Resource& claims_resource() {
  static const Resource claims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
  return claims;
}

const Resource& scales_resource() { return resource_of("MultimodalRouterPool"); }
const Resource& secrets_resource() { return resource_of("Secret"); }
const Resource& pod_monitors_resource() { return resource_of("PodMonitor"); }
const Resource& config_maps_resource() { return resource_of("ConfigMap"); }
const Resource& deployments_resource() { return resource_of("Deployment"); }
const Resource& stateful_sets_resource() { return resource_of("StatefulSet"); }

std::span<const Resource> rendered_resources() {
  // All but Secret, which is last.
  return std::span(rendered()).first(rendered().size() - 1);
}

const Resource* rendered_of(std::string_view kind) {
  const auto all = rendered_resources();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Resource& one) { return one.kind == kind; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace sightline::owned
