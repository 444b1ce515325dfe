// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/workloads.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/crd/words.h"
#include "operator/desired/model_files.h"
#include "operator/desired/pods.h"
#include "operator/desired/programs.h"
#include "operator/desired/secrets.h"
#include "operator/desired/settings.h"

namespace sightline::desired {

using object::Value;

namespace {

// Services drop a terminating pod's endpoints within this time. Until then it serves.
constexpr std::int64_t kLeaveSeconds = 5;
// Frontends find routers by name, and the cluster's DNS caches answers for 5 s more (the default of
// CoreDNS' plugin kubernetes).
constexpr std::int64_t kNameLeaveSeconds = kLeaveSeconds + 5;
// Besides the time for running requests.
constexpr std::int64_t kGraceSeconds = 15;

std::string path_of(std::string_view folder, std::string_view file) {
  return std::string(folder) + "/" + std::string(file);
}

std::string routers_url(const Scene& scene) {
  return "http://" + revision_name(scene.owner, scene.revision, kRouterComponent) + ":" +
         std::to_string(kSelectionPort);
}

std::vector<std::string> frontend_args(const Scene& scene) {
  std::vector<std::string> args = {"serve",
                                   "--roles",
                                   "frontend",
                                   "--host",
                                   "::",
                                   "--port",
                                   std::to_string(kClientPort),
                                   "--admin-host",
                                   "::",
                                   "--admin-port",
                                   std::to_string(kAdminPort),
                                   "--routers",
                                   routers_url(scene),
                                   "--selection-token-file",
                                   path_of(kTokensPath, kSelectionToken),
                                   "--admin-token-file",
                                   path_of(kTokensPath, kAdminToken),
                                   "--drain-timeout",
                                   std::to_string(drain_seconds(scene.spec)) + "s",
                                   "--config",
                                   path_of(kConfigPath, kFrontendFile)};
  if (scene.spec.multimodal.fetch.allow_private_addresses) {
    args.emplace_back("--media-allow-private-addresses");
  }
  return args;
}

std::vector<std::string> router_args(const Scene& scene) {
  return {"serve",
          "--roles",
          "router",
          "--selection-host",
          "::",
          "--selection-port",
          std::to_string(kSelectionPort),
          "--admin-host",
          "::",
          "--admin-port",
          std::to_string(kAdminPort),
          "--selection-token-file",
          path_of(kTokensPath, kSelectionToken),
          "--admin-token-file",
          path_of(kTokensPath, kAdminToken),
          "--replica-stale-after",
          scene.spec.router.stale_after,
          "--config",
          path_of(kConfigPath, kRouterFile)};
}

// Volumes and spread of a pod of frontends or routers. The operator pushes settings to both.
PodSpec pod_of(const Scene& scene, std::string_view component) {
  PodSpec pod(scene, component);
  add_download(pod, scene, ModelFiles::Small);
  mount_belonging(pod, scene, component);
  pod.mount_secret("tokens",
                   {token_file(scene.owner, kAdminToken), token_file(scene.owner, kSelectionToken)},
                   kTokensPath);
  pod.mount_config_map("config", live_config_name(scene), kConfigPath);
  pod.spread(selector_labels(scene.owner, component, scene.revision));
  return pod;
}

Value service(const Scene& scene, std::string name, std::string_view component,
              std::string_view revision) {
  Value object = object_of(scene, {.api_version = "v1",
                                   .kind = "Service",
                                   .name = std::move(name),
                                   .labels = labels(scene.owner, component, revision)});
  object.set({"spec", "selector"}, selector_labels(scene.owner, component, revision));
  return object;
}

}  // namespace

Value service_port(std::string_view name, std::int64_t port) {
  return Value::object({{"name", name}, {"port", port}, {"targetPort", name}, {"protocol", "TCP"}});
}

Value frontend_deployment(const Scene& scene, std::optional<std::int64_t> replicas) {
  const crd::Frontend& frontend = scene.spec.frontend;
  Value container = program(scene, kFrontend, frontend_args(scene));
  container.member("ports").append(port_of("http", kClientPort));
  container.member("readinessProbe") =
      probe_of({.path = "/readyz", .port = "admin", .period_seconds = 2, .failures = 2});
  container.set({"lifecycle", "preStop", "sleep", "seconds"}, kLeaveSeconds);
  set_resources(container, frontend.resources);
  const bool has_request =
      frontend.resources.requests.contains("cpu") || frontend.resources.limits.contains("cpu");
  // An autoscaler measures the CPU as a part of the request, so there must be a request.
  if (!replicas && !has_request) container.set({"resources", "requests", "cpu"}, "1");
  PodSpec pod = pod_of(scene, kFrontend);
  pod.add_container(std::move(container));
  pod.set("terminationGracePeriodSeconds",
          drain_seconds(scene.spec) + kLeaveSeconds + kGraceSeconds);
  Value object = deployment(scene, {.name = revision_name(scene.owner, scene.revision, kFrontend),
                                    .component = kFrontend,
                                    .pool = {},
                                    .pod = pod.take(),
                                    .replicas = replicas});
  // A new pod is ready before an old one ends.
  set_rolling(object, 1, 0);
  merge_users(object, frontend.pod_template);
  return object;
}

Value router_deployment(const Scene& scene, std::int64_t replicas) {
  Value container = program(scene, kRouterComponent, router_args(scene));
  container.member("ports").append(port_of("selection", kSelectionPort));
  container.member("readinessProbe") = probe_of(
      // Routers must be ready before the engines are (docs/api.md).
      {.path = "/readyz?exclude=engines", .port = "admin", .period_seconds = 2, .failures = 2});
  container.set({"lifecycle", "preStop", "sleep", "seconds"}, kNameLeaveSeconds);
  set_resources(container, scene.spec.router.resources);
  PodSpec pod = pod_of(scene, kRouterComponent);
  pod.add_container(std::move(container));
  pod.set("terminationGracePeriodSeconds", kNameLeaveSeconds + kGraceSeconds);
  Value object =
      deployment(scene, {.name = revision_name(scene.owner, scene.revision, kRouterComponent),
                         .component = kRouterComponent,
                         .pool = {},
                         .pod = pod.take(),
                         .replicas = replicas});
  // A new pod is ready before an old one ends.
  set_rolling(object, 1, 0);
  merge_users(object, scene.spec.router.pod_template);
  return object;
}

Value router_service(const Scene& scene) {
  Value object = service(scene, revision_name(scene.owner, scene.revision, kRouterComponent),
                         kRouterComponent, scene.revision);
  // Without an IP of its own, the name gives the addresses of all routers.
  object.set({"spec", "clusterIP"}, "None");
  object.set({"spec", "ports"}, Value::array({service_port("selection", kSelectionPort),
                                              service_port("admin", kAdminPort)}));
  return object;
}

Value client_service(const Scene& scene) {
  const crd::ClientService& wanted = scene.spec.frontend.service;
  Value object = service(scene, scene.owner.name, kFrontend, {});
  for (const auto& [name, value] : wanted.annotations) {
    object.set({"metadata", "annotations", name}, value);
  }
  object.set({"spec", "type"}, crd::word_of(wanted.type));
  object.set({"spec", "ports"}, Value::array({service_port("http", wanted.port)}));
  return object;
}

}  // namespace sightline::desired
