// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/nats.h"

#include <string>
#include <string_view>
#include <utility>

#include "operator/crd/words.h"
#include "operator/desired/disruption.h"
#include "operator/desired/pods.h"
#include "operator/desired/programs.h"
#include "operator/desired/workloads.h"

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::string_view kConfigFolder = "/etc/nats";
constexpr std::string_view kPidFolder = "/var/run/nats";
// Longer than a server takes to send its clients away.
constexpr std::int64_t kGraceSeconds = 60;

std::string name_of(const RenderInput& input) { return shared_name(input.owner, kNats); }

Value titled(const RenderInput& input, std::string_view api_version, std::string_view kind,
             std::string name) {
  return object_of(input, {.api_version = api_version,
                           .kind = kind,
                           .name = std::move(name),
                           .labels = labels(input.owner, kNats, {})});
}

Value config_map(const RenderInput& input, const std::string& config) {
  Value map = titled(input, "v1", "ConfigMap", name_of(input));
  map.set({"data", kNatsConfigFile}, config);
  return map;
}

Value service(const RenderInput& input, std::string name, Value ports) {
  Value object = titled(input, "v1", "Service", std::move(name));
  object.set({"spec", "selector"}, selector_labels(input.owner, kNats, {}));
  object.set({"spec", "ports"}, std::move(ports));
  return object;
}

Value clients_service(const RenderInput& input) {
  return service(input, name_of(input), Value::array({service_port("client", kNatsPort)}));
}

// Also resolves servers that are not ready, because servers must find each other before that.
Value servers_service(const RenderInput& input) {
  Value object = service(
      input, nats_servers_service(input.owner),
      Value::array({service_port("client", kNatsPort), service_port("cluster", kNatsClusterPort)}));
  object.set({"spec", "clusterIP"}, "None");
  object.set({"spec", "publishNotReadyAddresses"}, true);
  return object;
}

Value container(const RenderInput& input, const crd::ManagedNats& nats) {
  Value made = Value::object();
  made.member("name") = kNats;
  made.member("image") = nats.image.empty() ? input.images.nats : nats.image;
  made.member("imagePullPolicy") = crd::word_of(input.spec.image_pull_policy);
  made.member("args") =
      texts_of({"--config", std::string(kConfigFolder) + "/" + std::string(kNatsConfigFile)});
  // The configuration uses it as server_name.
  Value name = Value::object();
  name.set({"fieldRef", "fieldPath"}, "metadata.name");
  set_env_from(made, "POD_NAME", std::move(name));
  made.member("ports") =
      Value::array({port_of("client", kNatsPort), port_of("cluster", kNatsClusterPort),
                    port_of("monitor", kNatsMonitorPort)});
  made.member("readinessProbe") =
      probe_of({.path = "/healthz", .port = "monitor", .period_seconds = 2, .failures = 2});
  made.member("livenessProbe") =
      probe_of({.path = "/healthz", .port = "monitor", .period_seconds = 10, .failures = 6});
  // Lame duck mode: the server sends its clients to the others. A single server has no others.
  if (nats.replicas > 1) {
    made.set({"lifecycle", "preStop", "exec", "command"},
             texts_of({"nats-server", "--signal", "ldm=" + std::string(kNatsPidFile)}));
  }
  made.member("securityContext") = restricted_container();
  set_resources(made, nats.resources);
  return made;
}

// In one folder, because the configuration includes the file beside it.
Value config_volume(const RenderInput& input, const crd::ManagedNats& nats) {
  Value map = Value::object();
  map.set({"configMap", "name"}, name_of(input));
  Value sources = Value::array({std::move(map)});
  if (nats.replicas > 1) {
    Value secret = Value::object();
    secret.set({"secret", "name"}, shared_name(input.owner, "nats-server"));
    sources.append(std::move(secret));
  }
  Value volume = Value::object();
  volume.set({"projected", "sources"}, std::move(sources));
  return volume;
}

Value stateful_set(const RenderInput& input, const crd::ManagedNats& nats,
                   std::string_view config) {
  PodSpec pod(input, kNats);
  pod.set_user(input.spec);
  pod.mount("config", config_volume(input, nats), kConfigFolder, true);
  pod.mount_scratch("pid", kPidFolder);
  pod.add_container(container(input, nats));
  pod.set("terminationGracePeriodSeconds", kGraceSeconds);
  if (nats.replicas > 1) pod.spread(selector_labels(input.owner, kNats, {}));
  Value set = titled(input, "apps/v1", "StatefulSet", name_of(input));
  set.set({"spec", "replicas"}, input.spec.suspend ? 0 : nats.replicas);
  set.set({"spec", "serviceName"}, nats_servers_service(input.owner));
  set.set({"spec", "podManagementPolicy"}, "Parallel");
  set.set({"spec", "revisionHistoryLimit"}, 1);
  set.set({"spec", "selector", "matchLabels"}, selector_labels(input.owner, kNats, {}));
  set.set({"spec", "template", "metadata", "labels"}, labels(input.owner, kNats, {}));
  if (!input.spec.restart.empty()) {
    set.set({"spec", "template", "metadata", "annotations", kRestartAnnotation},
            input.spec.restart);
  }
  // A new configuration changes the template, so the servers restart.
  set_config_digest(set, config);
  set.set({"spec", "template", "spec"}, pod.take());
  merge_users(set, nats.pod_template);
  return set;
}

}  // namespace

std::vector<Value> nats_objects(const RenderInput& input, const NatsKeys& keys) {
  if (input.spec.nats.external) return {};
  const crd::ManagedNats nats = input.spec.nats.managed.value_or(crd::ManagedNats{});
  const std::string config = nats_config(input.owner, keys, nats.replicas);
  std::vector<Value> objects = {config_map(input, config), clients_service(input),
                                servers_service(input), stateful_set(input, nats, config)};
  if (nats.replicas > 1 && !input.spec.suspend) {
    objects.push_back(disruption_budget(input, {.name = name_of(input),
                                                .labels = labels(input.owner, kNats, {}),
                                                .selector = selector_labels(input.owner, kNats, {}),
                                                .unavailable_max = 1}));
  }
  return objects;
}

}  // namespace sightline::desired
