// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pods.h"

#include <algorithm>
#include <utility>

#include "operator/desired/access.h"

namespace sightline::desired {

using object::Value;

namespace {

void put_env(Value& container, Value variable) {
  Value::Items env = container["env"].items();
  // The name is the key of this list in server-side apply, so it must occur only once.
  const auto same = std::find_if(env.begin(), env.end(),
                                 [&](const Value& one) { return one["name"] == variable["name"]; });
  if (same == env.end()) {
    env.push_back(std::move(variable));
  } else {
    *same = std::move(variable);
  }
  container.member("env") = Value(std::move(env));
}

Value key_to_path(std::string_view key, std::string_view path) {
  return Value::object({{"key", key}, {"path", path}});
}

}  // namespace

Value restricted_container() {
  Value context = Value::object();
  context.member("allowPrivilegeEscalation") = false;
  context.member("readOnlyRootFilesystem") = true;
  context.set({"capabilities", "drop"}, Value::array({"ALL"}));
  return context;
}

void set_resources(Value& container, const crd::Resources& resources) {
  for (const auto& [name, quantity] : resources.requests) {
    container.set({"resources", "requests", name}, quantity);
  }
  for (const auto& [name, quantity] : resources.limits) {
    container.set({"resources", "limits", name}, quantity);
  }
}

Value probe_of(const Probe& probe) {
  Value value = Value::object();
  value.set({"httpGet", "path"}, probe.path);
  value.set({"httpGet", "port"}, probe.port);
  value.member("periodSeconds") = probe.period_seconds;
  value.member("failureThreshold") = probe.failures;
  value.member("timeoutSeconds") = probe.timeout_seconds;
  return value;
}

// The protocol is part of a port's key in server-side apply.
Value port_of(std::string_view name, std::int64_t number) {
  return Value::object({{"name", name}, {"containerPort", number}, {"protocol", "TCP"}});
}

Value texts_of(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.append(text);
  return list;
}

void set_env(Value& container, std::string_view name, std::string_view value) {
  put_env(container, Value::object({{"name", name}, {"value", value}}));
}

void set_env_from(Value& container, std::string_view name, Value source) {
  put_env(container, Value::object({{"name", name}, {"valueFrom", std::move(source)}}));
}

void set_env_of_secret(Value& container, std::string_view name, const crd::SecretRef& secret) {
  Value source = Value::object();
  source.set({"secretKeyRef", "name"}, secret.name);
  source.set({"secretKeyRef", "key"}, secret.key);
  set_env_from(container, name, std::move(source));
}

PodSpec::PodSpec(const RenderInput& input, std::string_view component) : spec_(Value::object()) {
  spec_.member("serviceAccountName") = service_account(input.owner, component);
  spec_.member("automountServiceAccountToken") = false;
  // Otherwise each Service of the namespace adds variables to the containers.
  spec_.member("enableServiceLinks") = false;
  spec_.set({"nodeSelector", "kubernetes.io/os"}, "linux");
  // The Pod Security Standard `restricted` demands both.
  set_security("runAsNonRoot", true);
  set_security("seccompProfile", Value::object({{"type", "RuntimeDefault"}}));
  for (const crd::PullSecret& secret : input.spec.image_pull_secrets) {
    spec_.member("imagePullSecrets").append(Value::object({{"name", secret.name}}));
  }
}

void PodSpec::mount(std::string_view volume, Value source, std::string_view path,
                    bool is_read_only) {
  const auto& volumes = spec_["volumes"].items();
  // Several containers may mount the same volume.
  const bool is_there = std::any_of(volumes.begin(), volumes.end(),
                                    [&](const Value& one) { return one["name"].text() == volume; });
  if (!is_there) {
    source.member("name") = volume;
    spec_.member("volumes").append(std::move(source));
  }
  Value mount = Value::object({{"name", volume}, {"mountPath", path}});
  if (is_read_only) mount.member("readOnly") = true;
  mounts_.append(std::move(mount));
}

void PodSpec::mount_secret(std::string_view volume, const std::vector<SecretFile>& files,
                           std::string_view path) {
  Value sources = Value::array();
  for (const SecretFile& file : files) {
    Value source = Value::object();
    source.set({"secret", "name"}, file.secret);
    source.set({"secret", "items"}, Value::array({key_to_path(file.key, file.file)}));
    sources.append(std::move(source));
  }
  Value projected = Value::object();
  projected.set({"projected", "sources"}, std::move(sources));
  mount(volume, std::move(projected), path, true);
}

void PodSpec::mount_config_map(std::string_view volume, const std::string& config_map,
                               std::string_view path) {
  Value source = Value::object();
  source.set({"configMap", "name"}, config_map);
  mount(volume, std::move(source), path, true);
}

void PodSpec::mount_scratch(std::string_view volume, std::string_view path) {
  mount(volume, Value::object({{"emptyDir", Value::object()}}), path, false);
}

void PodSpec::mount_shared_memory(const std::string& size) {
  Value source = Value::object();
  source.set({"emptyDir", "medium"}, "Memory");
  source.set({"emptyDir", "sizeLimit"}, size);
  mount("shared-memory", std::move(source), "/dev/shm", false);
}

void PodSpec::spread(Value labels) {
  // ScheduleAnyway, because a cluster with few nodes must still run all pods.
  Value constraint = Value::object({{"maxSkew", 1},
                                    {"topologyKey", "kubernetes.io/hostname"},
                                    {"whenUnsatisfiable", "ScheduleAnyway"}});
  constraint.set({"labelSelector", "matchLabels"}, std::move(labels));
  spec_.member("topologySpreadConstraints").append(std::move(constraint));
}

void PodSpec::set_user(const crd::Spec& spec) {
  if (spec.pod_user == crd::PodUser::Platform) return;
  set_security("runAsUser", kUser);
  set_security("fsGroup", kUser);
}

Value PodSpec::with_mounts(Value container) const {
  // The status of a failed container then has the end of its output, which judge/observe.cc shows.
  container.member("terminationMessagePolicy") = "FallbackToLogsOnError";
  if (mounts_.size() > 0) container.member("volumeMounts") = mounts_;
  return container;
}

void PodSpec::add_container(Value container) {
  spec_.member("containers").append(with_mounts(std::move(container)));
}

void PodSpec::add_init(Value container) {
  spec_.member("initContainers").append(with_mounts(std::move(container)));
}

void PodSpec::add_sidecar(Value container) {
  // An init container with this policy is a sidecar: it runs until the pod ends.
  container.member("restartPolicy") = "Always";
  add_init(std::move(container));
}

}  // namespace sightline::desired
