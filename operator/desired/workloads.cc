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
#include "operator/desired/program_settings.h"
#include "operator/desired/programs.h"
#include "operator/desired/secrets.h"

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

std::string routers_url(const RenderInput& input) {
  return "http://" + revision_name(input.owner, input.revision, kRouterComponent) + ":" +
         std::to_string(kSelectionPort);
}

std::vector<std::string> frontend_args(const RenderInput& input) {
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
                                   routers_url(input),
                                   "--selection-token-file",
                                   path_of(kTokensPath, kSelectionToken),
                                   "--admin-token-file",
                                   path_of(kTokensPath, kAdminToken),
                                   "--drain-timeout",
                                   std::to_string(drain_seconds(input.spec)) + "s",
                                   "--config",
                                   path_of(kConfigPath, kFrontendFile)};
  if (input.spec.multimodal.fetch.allow_private_addresses) {
    args.emplace_back("--media-allow-private-addresses");
  }
  return args;
}

std::vector<std::string> router_args(const RenderInput& input) {
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
          input.spec.router.stale_after,
          "--config",
          path_of(kConfigPath, kRouterFile)};
}

// Volumes and spread of a pod of frontends or routers. The operator pushes settings to both.
PodSpec pod_of(const RenderInput& input, std::string_view component) {
  PodSpec pod(input, component);
  add_download(pod, input, ModelFiles::Small);
  mount_belonging(pod, input, component);
  pod.mount_secret("tokens",
                   {token_file(input.owner, kAdminToken), token_file(input.owner, kSelectionToken)},
                   kTokensPath);
  pod.mount_config_map("config", live_config_name(input), kConfigPath);
  pod.spread(selector_labels(input.owner, component, input.revision));
  return pod;
}

Value service(const RenderInput& input, std::string name, std::string_view component,
              std::string_view revision) {
  Value object = object_of(input, {.api_version = "v1",
                                   .kind = "Service",
                                   .name = std::move(name),
                                   .labels = labels(input.owner, component, revision)});
  object.set({"spec", "selector"}, selector_labels(input.owner, component, revision));
  return object;
}

}  // namespace

Value service_port(std::string_view name, std::int64_t port) {
  return Value::object({{"name", name}, {"port", port}, {"targetPort", name}, {"protocol", "TCP"}});
}

Value frontend_deployment(const RenderInput& input, std::optional<std::int64_t> replicas) {
  const crd::Frontend& frontend = input.spec.frontend;
  Value container = program(input, kFrontend, frontend_args(input));
  container.member("ports").append(port_of("http", kClientPort));
  container.member("readinessProbe") =
      probe_of({.path = "/readyz", .port = "admin", .period_seconds = 2, .failures = 2});
  container.set({"lifecycle", "preStop", "sleep", "seconds"}, kLeaveSeconds);
  set_resources(container, frontend.resources);
  const bool has_request =
      frontend.resources.requests.contains("cpu") || frontend.resources.limits.contains("cpu");
  // An autoscaler measures the CPU as a part of the request, so there must be a request.
  if (!replicas && !has_request) container.set({"resources", "requests", "cpu"}, "1");
  PodSpec pod = pod_of(input, kFrontend);
  pod.add_container(std::move(container));
  pod.set("terminationGracePeriodSeconds",
          drain_seconds(input.spec) + kLeaveSeconds + kGraceSeconds);
  Value object = deployment(input, {.name = revision_name(input.owner, input.revision, kFrontend),
                                    .component = kFrontend,
                                    .pool = {},
                                    .pod = pod.take(),
                                    .replicas = replicas});
  // A new pod is ready before an old one ends.
  set_rolling(object, 1, 0);
  merge_users(object, frontend.pod_template);
  return object;
}

Value router_deployment(const RenderInput& input, std::int64_t replicas) {
  Value container = program(input, kRouterComponent, router_args(input));
  container.member("ports").append(port_of("selection", kSelectionPort));
  container.member("readinessProbe") = probe_of(
      // Routers must be ready before the engines are (docs/api.md).
      {.path = "/readyz?exclude=engines", .port = "admin", .period_seconds = 2, .failures = 2});
  container.set({"lifecycle", "preStop", "sleep", "seconds"}, kNameLeaveSeconds);
  set_resources(container, input.spec.router.resources);
  PodSpec pod = pod_of(input, kRouterComponent);
  pod.add_container(std::move(container));
  pod.set("terminationGracePeriodSeconds", kNameLeaveSeconds + kGraceSeconds);
  Value object =
      deployment(input, {.name = revision_name(input.owner, input.revision, kRouterComponent),
                         .component = kRouterComponent,
                         .pool = {},
                         .pod = pod.take(),
                         .replicas = replicas});
  // A new pod is ready before an old one ends.
  set_rolling(object, 1, 0);
  merge_users(object, input.spec.router.pod_template);
  return object;
}

Value router_service(const RenderInput& input) {
  Value object = service(input, revision_name(input.owner, input.revision, kRouterComponent),
                         kRouterComponent, input.revision);
  // Without an IP of its own, the name gives the addresses of all routers.
  object.set({"spec", "clusterIP"}, "None");
  object.set({"spec", "ports"}, Value::array({service_port("selection", kSelectionPort),
                                              service_port("admin", kAdminPort)}));
  return object;
}

Value client_service(const RenderInput& input) {
  const crd::ClientService& wanted = input.spec.frontend.service;
  Value object = service(input, input.owner.name, kFrontend, {});
  for (const auto& [name, value] : wanted.annotations) {
    object.set({"metadata", "annotations", name}, value);
  }
  object.set({"spec", "type"}, crd::word_of(wanted.type));
  object.set({"spec", "ports"}, Value::array({service_port("http", wanted.port)}));
  return object;
}

}  // namespace sightline::desired
