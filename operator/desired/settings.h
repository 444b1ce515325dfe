// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// What frontends, routers and agents are told.
namespace sightline::desired {

// A worker as routers know it: the fields of `--worker`.
using WorkerFields = std::map<std::string, std::string>;
// Sorted by name, of each name the first: two pools may find one pod, an endpoint may have the name
// of a pod, and programs refuse a list in which a name stands twice.
std::vector<WorkerFields> by_name_once(std::vector<WorkerFields> workers);

// The environment that all programs of a revision have in common, SIGHTLINE_* by name: what
// identifies blocks and who belongs together. Of an immutable ConfigMap, so that a pod that starts
// again never meets settings of another revision. It follows from the agreement and the owner
// alone: whoever changes what stands here changes the version of agreements too.
std::map<std::string, std::string> revision_environment(const Scene& scene);
// Where NATS is and what is shown to it; of the container, since it may change within a revision.
std::map<std::string, std::string> nats_environment(const Scene& scene);

// Settings that running routers and frontends take over (PUT /v1/settings), by their dotted names;
// values as text.
std::map<std::string, std::string> live_settings(const Scene& scene);

// What the ConfigMap NAME-REVISION-live holds: configuration files, JSON, which is YAML, and the
// log level of agents, which they take at their start.
inline constexpr std::string_view kFrontendFile = "frontend.yaml";
inline constexpr std::string_view kRouterFile = "router.yaml";
inline constexpr std::string_view kLogLevelKey = "log-level";
// Workers of a file: programs refuse files of more than 10,000 values, and a start without workers
// is better than none.
inline constexpr std::size_t kFileWorkersMax = 1'200;
// Of routers: the live settings as they are now and the workers as they were last, so that a start
// without the operator has both. Of more workers than a file may have none stands in it: they are
// pushed.
std::string router_file(const Scene& scene, const std::vector<WorkerFields>& workers);
// Of frontends: those of the settings that they obey. They refuse a file that names workers.
std::string frontend_file(const Scene& scene);
// A file with workers alone, of agents: the first ones, as many as a file may have.
std::string workers_file(const std::vector<WorkerFields>& workers);

std::string revision_config_name(const Scene& scene);
std::string live_config_name(const Scene& scene);

std::string template_config_name(const Scene& scene);

// The ConfigMaps NAME-REVISION (immutable), NAME-REVISION-template (immutable: the chat template as
// it was when the revision was made) and NAME-REVISION-live.
object::Value revision_config_map(const Scene& scene);
object::Value template_config_map(const Scene& scene);
object::Value live_config_map(const Scene& scene, const std::vector<WorkerFields>& workers);

}  // namespace sightline::desired
