// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// What the pods of all components have in common.
namespace sightline::desired {

// The user and group of containers whose images name no user, or root, unless spec.podUser leaves
// the choice to the platform. A user's pod template may name another one.
inline constexpr std::int64_t kUser = 65'532;

// The security context of a container: it cannot change its user, writes only to volumes and has no
// capabilities, as the restricted Pod Security Standard demands.
object::Value restricted_container();

// Sets requests and limits of a container. Without any, the container gets no resources member.
void set_resources(object::Value& container, const crd::Resources& resources);

// {"httpGet": {"path", "port"}} and its times.
struct Probe {
  std::string_view path;
  // The port's name.
  std::string_view port;
  std::int64_t period_seconds = 5;
  std::int64_t failures = 3;
  std::int64_t timeout_seconds = 2;
};
object::Value probe_of(const Probe& probe);

object::Value port_of(std::string_view name, std::int64_t number);
object::Value texts_of(const std::vector<std::string>& texts);

// Sets a variable of a container. Replaces an existing one, because the API server refuses a list
// with a repeated name.
void set_env(object::Value& container, std::string_view name, std::string_view value);
// A variable from another source: `source` is the value of `valueFrom`.
void set_env_from(object::Value& container, std::string_view name, object::Value source);
// A variable from a key of a Secret.
void set_env_of_secret(object::Value& container, std::string_view name,
                       const crd::SecretRef& secret);

// A key of a Secret, and the name of its file.
struct SecretFile {
  std::string secret;
  std::string key;
  std::string file;
};

// Builds the spec of a pod. Volumes are mounted in the containers that are added after them. So
// each container has what it needs, and nothing of the others.
class PodSpec {
 public:
  // A pod of a component, with the component's ServiceAccount (access.h). It follows the restricted
  // Pod Security Standard, and contains no credentials of the API server.
  PodSpec(const RenderInput& input, std::string_view component);

  // Containers that are added afterwards get no mounts of earlier ones.
  void begin_mounts() { mounts_ = object::Value::array(); }

  // Read-only.
  void mount_secret(std::string_view volume, const std::vector<SecretFile>& files,
                    std::string_view path);
  // All keys of the ConfigMap.
  void mount_config_map(std::string_view volume, const std::string& config_map,
                        std::string_view path);
  // A writable folder, which is deleted with the pod.
  void mount_scratch(std::string_view volume, std::string_view path);
  // Gives /dev/shm this size (a quantity). Engines pass tensors between their processes in it.
  void mount_shared_memory(const std::string& size);
  // A volume of any kind. A volume that the pod has already is mounted once more.
  void mount(std::string_view volume, object::Value source, std::string_view path,
             bool is_read_only);

  // Prefers different nodes for pods with these labels.
  void spread(object::Value labels);

  // Adds a container. If it ends with an error, the end of its log appears in the pod's status, and
  // so in the object's.
  void add_container(object::Value container);
  // Adds a container that must succeed before the next one starts.
  void add_init(object::Value container);
  // Adds a container that starts before the others and runs until they have ended.
  void add_sidecar(object::Value container);

  // Sets another member of the spec.
  void set(std::string_view name, object::Value value) { spec_.member(name) = std::move(value); }
  // Sets kUser and its group, unless the platform chooses them.
  void set_user(const crd::Spec& spec);
  void set_security(std::string_view name, object::Value value) {
    spec_.set({"securityContext", name}, std::move(value));
  }

  [[nodiscard]] object::Value take() { return std::move(spec_); }

 private:
  object::Value with_mounts(object::Value container) const;

  object::Value spec_;
  object::Value mounts_ = object::Value::array();
};

}  // namespace sightline::desired
