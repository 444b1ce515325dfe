// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// What the pods of all components have in common.
namespace sightline::desired {

// User and group of containers whose images name none, or root, unless spec.podUser leaves them to
// the platform. A user's pod template may name another one.
inline constexpr std::int64_t kUser = 65'532;

// Of a container: may become nobody else, write nothing but volumes, and has no capabilities, as
// the restricted Pod Security Standard asks.
object::Value restricted_container();

// requests and limits of a container; a container without any stays without.
void set_resources(object::Value& container, const crd::Resources& resources);

// {"httpGet": {"path", "port"}} and when it is asked.
struct Probe {
  std::string_view path;
  std::string_view port;  // by name
  std::int64_t period_seconds = 5;
  std::int64_t failures = 3;
  std::int64_t timeout_seconds = 2;
};
object::Value probe_of(const Probe& probe);

object::Value port_of(std::string_view name, std::int64_t number);
object::Value texts_of(const std::vector<std::string>& texts);

// Sets a variable of a container; one of that name is replaced, since a list in which a name stands
// twice is refused.
void set_env(object::Value& container, std::string_view name, std::string_view value);
// From elsewhere: the value of `valueFrom`.
void set_env_from(object::Value& container, std::string_view name, object::Value source);
// From a key of a Secret.
void set_env_of_secret(object::Value& container, std::string_view name,
                       const crd::SecretRef& secret);

// A key of a Secret, and the file that it becomes.
struct SecretFile {
  std::string secret;
  std::string key;
  std::string file;
};

// A pod's spec being made. Volumes are mounted in the containers that are added after them, so that
// each container has what it needs and nothing of the others.
class PodSpec {
 public:
  // Of a component, whose ServiceAccount it has: see access.h. The restricted Pod Security Standard
  // is kept, nothing of the API server is known inside.
  PodSpec(const Scene& scene, std::string_view component);

  // Containers added from here on have none of the mounts of those before.
  void begin_mounts() { mounts_ = object::Value::array(); }

  // Read-only.
  void mount_secret(std::string_view volume, const std::vector<SecretFile>& files,
                    std::string_view path);
  // All of it.
  void mount_config_map(std::string_view volume, const std::string& config_map,
                        std::string_view path);
  // A folder that may be written to, gone with the pod.
  void mount_scratch(std::string_view volume, std::string_view path);
  // /dev/shm of that size, as a quantity: engines pass tensors between their processes in it.
  void mount_shared_memory(const std::string& size);
  // A volume of any kind. One that the pod has already is mounted once more.
  void mount(std::string_view volume, object::Value source, std::string_view path,
             bool is_read_only);

  // Pods of these labels rather stand on different nodes.
  void spread(object::Value labels);

  // A container that ends with an error leaves the end of its log, which the object's status says.
  void add_container(object::Value container);
  // One that is over before the next one starts.
  void add_init(object::Value container);
  // One that starts before the containers and runs beside them until they have ended.
  void add_sidecar(object::Value container);

  // Members of the spec beside those.
  void set(std::string_view name, object::Value value) { spec_.member(name) = std::move(value); }
  // kUser and its group, where the platform does not choose them.
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
