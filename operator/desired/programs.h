// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/pods.h"
#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// What containers of `sightline` have in common: frontends, routers, agents.
namespace sightline::desired {

// A container with the revision's environment, an admin port and its liveness probe.
object::Value program(const Scene& scene, std::string_view name,
                      const std::vector<std::string>& args);
// The same as an agent; `args` follow those that all agents have.
object::Value agent_program(const Scene& scene, const std::vector<std::string>& args);

// What every program needs to belong to its revision: the identity key, what it shows to NATS as
// the user of that name (secrets.h), and the model's files. Mounted in containers added later.
void mount_belonging(PodSpec& pod, const Scene& scene, std::string_view nats_user);

// A Deployment of a component of the revision, of a pool where one is named. Left out, the number
// of pods belongs to who scales them.
struct Workload {
  std::string name;
  std::string_view component;
  std::string pool;
  object::Value pod;
  std::optional<std::int64_t> replicas;
};
object::Value deployment(const Scene& scene, Workload workload);
void set_rolling(object::Value& deployment, std::int64_t surge, std::int64_t unavailable);
// The annotation that says by which configuration, read at the start only, the pods were made.
void set_config_digest(object::Value& workload, std::string_view config);
// Puts the user's pod template over a workload's; see pod_merge.h.
void merge_users(object::Value& workload, const crd::Opaque& users);

}  // namespace sightline::desired
