// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/pods.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// What containers of `sightline` have in common: frontends, routers, agents.
namespace sightline::desired {

// A container with the revision's environment, an admin port and its liveness probe.
object::Value program(const RenderInput& input, std::string_view name,
                      const std::vector<std::string>& args);
// The same for an agent. `args` come after the arguments of all agents.
object::Value agent_program(const RenderInput& input, const std::vector<std::string>& args);

// Mounts what a program needs as a member of its revision: the identity key, its NATS credentials
// as user `nats_user` (secrets.h), and the model's files. For containers that are added later.
void mount_belonging(PodSpec& pod, const RenderInput& input, std::string_view nats_user);

// A Deployment of a component of the revision, and of a pool if one is named. Without `replicas` an
// autoscaler sets the number of pods.
struct Workload {
  std::string name;
  std::string_view component;
  std::string pool;
  object::Value pod;
  std::optional<std::int64_t> replicas;
};
object::Value deployment(const RenderInput& input, Workload workload);
// A rolling update with this many pods above and below the number of replicas.
void set_rolling(object::Value& deployment, std::int64_t surge, std::int64_t unavailable);
// An annotation with the digest of the configuration that the pods read only at start. A new digest
// replaces the pods.
void set_config_digest(object::Value& workload, std::string_view config);
// Merges the user's pod template into a workload's, see pod_merge.h.
void merge_users(object::Value& workload, const crd::Opaque& users);

}  // namespace sightline::desired
